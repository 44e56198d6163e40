"""NumPy, imported when it is first used: `import lockstep` and the program take a tenth of the time without."""


class _Numpy:
    def __getattr__(self, name):
        import numpy
        value = getattr(numpy, name)
        setattr(self, name, value)  # found at once from now on
        return value


np = _Numpy()
