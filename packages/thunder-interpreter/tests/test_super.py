"""What ``super`` finds: descriptors in Python are interpreted, as where an object itself is asked."""

from thunder_interpreter import Callbacks, interpret

NAME = "triple"


class Named:
    def __get__(self, instance, owner=None):
        return ("of", None if instance is None else instance.value, owner.__name__)


class Cached(property):
    pass


class Base:
    plain = 3
    named = Named()

    def __init__(self, value):
        self.value = value

    @property
    def double(self):
        return self.value * 2

    @Cached
    def triple(self):
        return self.value * 3

    @property
    def missing(self):
        raise AttributeError("missing here")

    @classmethod
    def made(cls, value):
        return cls(value).value


class Child(Base):
    named = plain = None

    @property
    def double(self):
        return super().double + 1

    @property
    def triple(self):
        return getattr(super(), NAME) + 1

    @property
    def missing(self):
        return super().missing

    def found(self):
        behind = super()
        return behind.named, behind.plain, super().value if hasattr(behind, "value") else "hidden"

    def about(self):
        behind = super()
        return behind.__class__.__name__, behind.__self__ is self, behind.__thisclass__, behind.__self_class__

    @classmethod
    def made(cls, value):
        return super().made(value), super().double.fget is Base.double.fget, super().named, super().plain


def program():
    child = Child(5)
    child.named = "own"
    errors = []
    for ask in (lambda: child.missing, lambda: super(Child, child).nothing, lambda: super(Child).double):
        try:
            ask()
        except AttributeError as error:
            errors.append(str(error))
    by_name = Base.double.__get__(child), Base.double.__get__(child, Base), property.__get__(Base.triple, child)
    return child.double, child.triple, child.found(), child.about(), Child.made(2), errors, by_name


def test_it_finds_what_cpython_does():
    assert interpret(program)() == program()


def test_getters_that_it_finds_are_interpreted():
    called = []

    class Watch(Callbacks):
        def call(self, fn, args, kwargs):
            called.append(fn)
            return super().call(fn, args, kwargs)

    assert interpret(program, callbacks=Watch())() == program()
    assert {Base.double.fget, Base.triple.fget, Base.missing.fget, Named.__get__} <= set(called)
