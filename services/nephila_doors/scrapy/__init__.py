"""Scrapy over Nephila's frontier: `SCHEDULER = "nephila_doors.scrapy.scheduler.Scheduler"`."""
