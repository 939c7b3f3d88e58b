class FairShare:
    def next(self, jobs):
        return jobs[0]
