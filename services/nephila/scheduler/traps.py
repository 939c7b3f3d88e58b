class Yield:
    @classmethod
    def unpack(cls, b):
        return cls()

    def pack(self):
        return b""
