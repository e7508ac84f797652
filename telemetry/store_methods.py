"""Passes methods of a log on to its store, with the signatures and documentation of the store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, Generic, ParamSpec, Protocol, TypeVar, cast, final, overload

from ..engine.log.contract import Store

__all__ = ("HasStore", "StoreMethod")

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class HasStore(Protocol):
    """Something in front of a store."""

    @property
    def _store(self) -> Store: ...


@final
class StoreMethod(Generic[Parameters, Result]):
    """A method that passes its call on to the store; signature and documentation are the store's.

    Args:
        method: the method, as the protocol ``Store`` declares it.
    """

    def __init__(self, method: Callable[Concatenate[Store, Parameters], Result]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    def __set_name__(self, owner: type[HasStore], name: str) -> None:
        self._name = name

    @overload
    def __get__(
        self, log: None, owner: type[HasStore], /
    ) -> Callable[Concatenate[Store, Parameters], Result]: ...

    @overload
    def __get__(self, log: HasStore, owner: type[HasStore], /) -> Callable[Parameters, Result]: ...

    def __get__(self, log: HasStore | None, owner: type[HasStore], /) -> Callable[..., Result]:
        """The store's own method, bound; of the class, the declaration."""
        if log is None:
            return self._method
        return cast(Callable[Parameters, Result], getattr(log._store, self._name))
