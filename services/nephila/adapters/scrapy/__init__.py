"""Scrapy over Nephila's frontier: `SCHEDULER = "nephila.adapters.scrapy.scheduler.Scheduler"`."""
