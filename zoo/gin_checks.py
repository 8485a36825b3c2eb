"""Strict Gin: what Gin takes in silence is found here, from the parsed files alone, before anything runs.

`read` needs no TensorFlow. `check` needs the configurables that the files speak of, and so what they import.
"""

import collections.abc
import dataclasses
import difflib
import inspect
import os
import re
import tokenize
import types
import typing
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import gin
from gin import config_parser

from zoo.guards import UserError, check

ROOT = "Experiment"  # all that a run uses is reached from it


@dataclasses.dataclass(frozen=True)
class Reference:
    """`@name` (a function) or, if `call`, `@name()` (its result)."""

    scope: str
    name: str
    call: bool


@dataclasses.dataclass(frozen=True)
class Macro:
    """`%name`."""

    name: str


@dataclasses.dataclass(frozen=True)
class Binding:
    """A statement `scope/configurable.parameter = value`; a macro has no parameter."""

    scope: str
    configurable: str
    parameter: str
    value: Any
    origin: str  # the file, or --gin_bindings
    where: str  # file and line
    text: str

    @property
    def key(self) -> str:
        name = f"{self.scope}/{self.configurable}" if self.scope else self.configurable
        return f"{name}.{self.parameter}" if self.parameter else name


@dataclasses.dataclass(frozen=True)
class Statements:
    """All that the files and flags of a run say, in the order in which it takes effect."""

    bindings: list[Binding] = dataclasses.field(default_factory=list)
    imports: list[str] = dataclasses.field(default_factory=list)


class _Delegate(config_parser.ParserDelegate):
    def configurable_reference(self, scoped_configurable_name, evaluate):
        scope, _, name = scoped_configurable_name.rpartition("/")
        return Reference(scope, name, evaluate)

    def macro(self, macro_name):
        return Macro(macro_name)


def read(paths: Sequence[str], bindings: Sequence[str], find_file: Callable[[str], str]) -> Statements:
    """Reads files, their includes and `--gin_bindings`.

    Raises:
      UserError: on what can't be parsed, and on the same key twice in one file.
    """
    found = Statements()
    for path in paths:
        _read_file(path, find_file, found)
    for text in bindings:
        _parse(text, f"--gin_bindings={text!r}", "--gin_bindings", find_file, found)
    return found


def read_text(text: str) -> Statements:
    """Reads Gin from a string that includes no files."""
    found = Statements()
    _parse(text, "--", "", str, found)
    return found


def effective(bindings: Sequence[Binding]) -> dict[str, Binding]:
    """The binding of each key that counts: the last."""
    return {binding.key: binding for binding in bindings}


def overrides(bindings: Sequence[Binding]) -> list[str]:
    """A line for each binding that a later file or flag replaces by another value."""
    lines, current = [], {}
    for binding in bindings:
        old = current.get(binding.key)
        if old is not None and old.value != binding.value:
            lines.append(
                f"{binding.key} = {shown(binding.value)} ({binding.where}) instead of {shown(old.value)} ({old.where})"
            )
        current[binding.key] = binding
    return lines


def check_bindings(bindings: Sequence[Binding], written: Collection[str] = ()) -> None:
    """Checks names, types, reachability and completeness.

    Args:
      bindings: in the order in which they take effect.
      written: files that a run wrote itself; they may hold what nothing uses any more.

    Raises:
      UserError: on the first mistake, with where it stands, the value, the rule and the nearest valid name.
    """
    macros = {b.configurable: b.value for b in bindings if not b.parameter}
    for binding in bindings:
        if binding.parameter:
            _check_names(binding)
        for item in flatten(binding.value):
            if isinstance(item, Macro):
                check(
                    item.name in macros,
                    f"{binding.where}: %{item.name}: no such macro{_nearest(item.name, macros)}.",
                )
            if isinstance(item, Reference):
                _configurable(item.name, f"{binding.where}: @{item.name}")
        if binding.parameter:
            _check_type(binding, _resolve(binding.value, macros))
    _check_reachable(bindings, written)
    _check_required(bindings)


def shown(value: Any) -> str:
    """A value as it is written in Gin."""
    if isinstance(value, Reference):
        scope = f"{value.scope}/" if value.scope else ""
        return f"@{scope}{value.name}{'()' if value.call else ''}"
    if isinstance(value, Macro):
        return f"%{value.name}"
    return repr(value)


def flatten(value: Any) -> Iterator[Any]:
    """The leaves of a value that may be a list, tuple or dict."""
    if isinstance(value, dict):
        for item in value.items():
            yield from flatten(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from flatten(item)
    else:
        yield value


def _read_file(path: str, find_file: Callable[[str], str], found: Statements) -> None:
    with open(path, encoding="utf-8") as file:
        text = file.read()
    before = len(found.bindings)
    _parse(text, relative(path), path, find_file, found)
    first = {}
    for binding in found.bindings[before:]:
        if binding.where.rpartition(":")[0] != relative(path):
            continue  # of an include, which the including file may override
        earlier = first.setdefault(binding.key, binding)
        check(
            earlier is binding,
            f"{binding.where}: {binding.key} = {shown(binding.value)}: bound in this file already, {shown(earlier.value)} at "
            f"{earlier.where}. Keep one of the two.",
        )


def _parse(text: str, name: str, origin: str, find_file: Callable[[str], str], found: Statements) -> None:
    def where(line: int) -> str:
        return name if name.startswith("--") else f"{name}:{line}"

    try:
        for statement in config_parser.ConfigParser(text, _Delegate()):
            place = where(statement.location.line_num)
            if isinstance(statement, config_parser.IncludeStatement):
                _read_file(find_file(statement.filename), find_file, found)
            elif isinstance(statement, config_parser.ImportStatement):
                found.imports.append(statement.module)
            elif isinstance(statement, config_parser.BindingStatement):
                parts = (statement.scope, statement.selector, statement.arg_name, statement.value)
                found.bindings.append(Binding(*parts, origin, place, statement.location.line_content.strip()))
    except (SyntaxError, tokenize.TokenError) as error:
        number = getattr(error, "lineno", None) or 1
        lines = text.splitlines() or [""]
        line = lines[min(number, len(lines)) - 1].strip()
        raise UserError(f"{where(number)}: {line}: {_syntax_advice(line)}") from error


def _syntax_advice(line: str) -> str:
    """What is wrong with a line that Gin can't parse, in words."""
    name, equals, value = (part.strip() for part in line.partition("="))
    value = value.split("#")[0].strip()
    if not equals:
        return "this is no binding; write NAME.PARAMETER = VALUE, quoted as a whole for the shell."
    if not value:
        return "no value behind the equals sign."
    if re.search("[“”‘’]", value):
        return "typographic quotes; write '…' with straight ones."
    if value.lower() in ("true", "false", "none", "null"):
        return f"write {'None' if value.lower() in ('none', 'null') else value.capitalize()}."
    if value.count("'") % 2 or value.count('"') % 2:
        return "a quote that does not end; the shell may have taken one: put the whole binding in double quotes."
    if re.fullmatch(r"[A-Za-z_][\w.]*\(?\)?", value):
        return (
            f"unquoted string; write {name} = '{value}' (the shell takes quotes away: put the whole binding in double "
            f"quotes), or @{value} for a function."
        )
    if re.search(r"[\d)]\s*[-+*/%]+\s*[\d(]|\*\*", value):
        return "Gin does no arithmetic; write the result."
    return "not a value of Gin; it takes numbers, 'strings', True, False, None, lists, tuples, dicts, @functions and %macros."


def _configurable(name: str, where: str) -> Callable:
    """The function or class of a name; raises if there is none."""
    try:
        return gin.get_configurable(name)
    except ValueError as error:
        raise UserError(f"{where}: no such configurable{_nearest(name, _configurables())}.") from error


def _configurables() -> list[str]:
    # Gin has no public list of what is registered; this is the one private name that zoo uses of it.
    return [name.rsplit(".", 1)[-1] for name, _ in gin.config._REGISTRY.items()]


def _check_names(binding: Binding) -> None:
    where = f"{binding.where}: {binding.text}"
    signature = inspect.signature(_configurable(binding.configurable, where))
    denied = gin.config._REGISTRY.get_match(binding.configurable).denylist or ()
    parameters = [name for name in signature.parameters if name not in denied]
    check(
        binding.parameter not in denied,
        f"{where}: the experiment gives {binding.parameter} itself. Bind Experiment.{binding.parameter} if there is one.",
    )
    check(
        binding.parameter in parameters,
        f"{where}: {binding.configurable} has no parameter {binding.parameter}{_nearest(binding.parameter, parameters)}.",
    )


def _check_type(binding: Binding, value: Any) -> None:
    hints = typing.get_type_hints(inspect.unwrap(gin.get_configurable(binding.configurable)))
    hint = hints.get(binding.parameter, Any)
    check(
        _fits(value, hint),
        f"{binding.where}: {binding.text}: {shown(value)} is {_kind(value)}, but {binding.parameter} takes "
        f"{_words(hint)}{_type_advice(value, hint)}.",
    )


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value written in Gin is of a type hint. What `@name()` returns is not known, and taken as right."""
    if hint is Any or (isinstance(value, Reference) and value.call and not _is_callable(hint)):
        return True
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, arg) for arg in args)
    if hint is type(None):
        return value is None
    if _is_callable(hint):
        return isinstance(value, Reference) and not value.call
    if origin is tuple:
        return isinstance(value, tuple | list) and all(_fits(item, args[0]) for item in value)
    if hint is float:
        return type(value) in (int, float)
    return type(value) is hint


def _is_callable(hint: Any) -> bool:
    return (typing.get_origin(hint) or hint) is collections.abc.Callable


def _kind(value: Any) -> str:
    if isinstance(value, Reference):
        return "the result of a function" if value.call else "a function"
    return {"str": "a string", "int": "an integer", "float": "a float", "bool": "a truth value"}.get(
        type(value).__name__, f"a {type(value).__name__}"
    )


def _words(hint: Any) -> str:
    if _is_callable(hint):
        return "a function, @name"
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return " or ".join(_words(arg) for arg in typing.get_args(hint))
    return {
        "int": "an integer",
        "float": "a number",
        "str": "a string",
        "bool": "True or False",
        "NoneType": "None",
    }.get(getattr(hint, "__name__", ""), str(hint))


def _type_advice(value: Any, hint: Any) -> str:
    kinds = typing.get_args(hint) or (hint,)
    if isinstance(value, float) and int in kinds and value == int(value):
        return f"; write {int(value):_}"
    if isinstance(value, str) and (int in kinds or float in kinds) and re.fullmatch(r"[-+\d._e]+", value):
        return f"; write {value} without quotes"
    if isinstance(value, Reference) and value.call and any(map(_is_callable, (hint, *kinds))):
        return f"; write @{value.name} without parentheses"
    return ""


def _resolve(value: Any, macros: dict[str, Any]) -> Any:
    seen = set()
    while isinstance(value, Macro) and value.name not in seen:
        seen.add(value.name)
        value = macros[value.name]
    return value


def _reached(bindings: Sequence[Binding]) -> tuple[set[tuple[str, str]], set[str]]:
    """The (scope, name) of all configurables and the names of all macros that the root reaches."""
    final = effective(bindings).values()
    configurables, macros, open_values = {("", ROOT)}, set(), []
    done = set()
    while True:
        for binding in final:
            used = binding.configurable in macros if not binding.parameter else _uses(configurables, binding)
            if used and binding.key not in done:
                done.add(binding.key)
                open_values += flatten(binding.value)
        if not open_values:
            return configurables, macros
        for value in open_values:
            if isinstance(value, Reference):
                configurables.add((value.scope, value.name.rsplit(".", 1)[-1]))
            if isinstance(value, Macro):
                macros.add(value.name)
        open_values = []


def _uses(configurables: set[tuple[str, str]], binding: Binding) -> bool:
    name = binding.configurable.rsplit(".", 1)[-1]
    scopes = [scope.split("/") if scope else [] for scope, other in configurables if other == name]
    own = binding.scope.split("/") if binding.scope else []
    return any(scope[: len(own)] == own for scope in scopes)


def _check_reachable(bindings: Sequence[Binding], written: Collection[str]) -> None:
    """Each binding must be used by the final configuration, or by the one that its own file makes with those before.

    The second holds for a recipe's model that a later file replaces: that is an override, not a mistake.
    """
    origins = list(dict.fromkeys(binding.origin for binding in bindings))
    reached = {
        origin: _reached([b for b in bindings if origins.index(b.origin) <= i]) for i, origin in enumerate(origins)
    }
    final = _reached(bindings)
    for binding in (b for b in bindings if b.origin not in written):
        for configurables, macros in (reached[binding.origin], final):
            if binding.configurable in macros if not binding.parameter else _uses(configurables, binding):
                break
        else:
            kind = "configurable" if binding.parameter else "macro"
            names = sorted({name for _, name in final[0]} if binding.parameter else final[1])
            raise UserError(
                f"{binding.where}: {binding.text}: nothing in this experiment uses the {kind} "
                f"{binding.key.rpartition('.')[0] or binding.key}{_nearest(binding.configurable, names)}. In use: "
                f"{', '.join(names) or 'none'}."
            )


def _check_required(bindings: Sequence[Binding]) -> None:
    final = effective(bindings)
    for _, name in sorted(_reached(bindings)[0]):
        denied = gin.config._REGISTRY.get_match(name).denylist or ()
        for parameter in inspect.signature(gin.get_configurable(name)).parameters.values():
            key = f"{name}.{parameter.name}"
            optional = parameter.default not in (gin.REQUIRED, inspect.Parameter.empty) or parameter.name in denied
            check(
                optional or key in final,
                f"{key} has no value: it must be bound, in a Gin file or with --gin_bindings='{key} = …'.",
            )


def _nearest(name: str, names: collections.abc.Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(names), 1)
    return f"; did you mean {close[0]}?" if close else ""


def relative(path: str) -> str:
    """A path as short as it can be shown from here."""
    short = os.path.relpath(path)
    return path if short.startswith("..") else short
