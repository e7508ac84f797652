"""Converts the usual values of arguments without pydantic.

typer converts every argument by an adapter of pydantic, which takes longer to import and to build than
many a command takes to run. A text that is to stay a text, a number of digits, a choice that is spelled as
it is declared and an option that was left out need none. All other values go to typer's own conversion; its errors are rephrased by ``usage``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, final, get_args, get_origin

from typer import BadParameter, Context
from typer.core import TyperGroup, TyperOption

if TYPE_CHECKING:
    from typer._click.core import Command
    from typer._coercion import RuntimeParam, TypeDescriptor

__all__ = ("convert_lightly",)

_HELD: Final = "_runtime_param"
"""Where typer keeps how a parameter is converted, made when it is first needed. A name of typer's own: a
typer that has another converts as it always does."""

_LONG: Final = 18  # digits


def convert_lightly(command: Command, parent: Context | None = None) -> None:
    """Makes a command, and all commands below it, convert usual values without pydantic."""
    context = Context(command, parent=parent, **command.context_settings)
    for parameter in command.get_params(context):  # with the option for help, which is made here
        described = getattr(parameter, "type_descriptor", None)
        if described is not None and getattr(parameter, _HELD, parameter) is None:
            setattr(parameter, _HELD, _Conversion(described))
    for below in command.commands.values() if isinstance(command, TyperGroup) else ():
        convert_lightly(below, context)


@final
class _Conversion:
    """How one parameter is converted, as typer asks for it."""

    def __init__(self, descriptor: TypeDescriptor) -> None:
        self._descriptor = descriptor
        self._info = descriptor.parameter_info
        self._by_typer: RuntimeParam | None = None

    def coerce(self, value: object, *, param: TyperOption, ctx: Context) -> object:
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        if self._info.parser is None and (usual := self._usual(value)) is not None:
            return usual
        if self._by_typer is None:
            from typer._coercion import build_runtime_param

            self._by_typer = build_runtime_param(self._descriptor)
        try:
            return self._by_typer.coerce(value, param=param, ctx=ctx)
        except BadParameter as error:
            from .usage import expected

            raise BadParameter(expected(error.message, value), ctx=ctx, param=param) from error

    def _usual(self, value: object) -> object:
        """The value as it is passed on; None if typer is to convert it."""
        annotation: object = self._descriptor.annotation
        among = get_args(annotation) if get_origin(annotation) is Literal else ()
        if isinstance(value, (list, tuple)):
            texts = [one for one in value if isinstance(one, str)]
            return texts if annotation == list[str] and len(texts) == len(value) else None
        if not isinstance(value, str):  # a default, or a flag
            return value if annotation in (bool, int) and type(value) is annotation else None
        if annotation is str or value in among:
            return value
        if annotation is int and value.isascii() and value.isdecimal() and len(value) < _LONG:
            least, most = self._info.min, self._info.max
            number = int(value)
            within = (least is None or number >= least) and (most is None or number <= most)
            return number if within else None
        return None
