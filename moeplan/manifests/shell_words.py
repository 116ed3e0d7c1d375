"""Shell scripts as the simple commands they run: quoting, continuations, assignments, arrays, expansions.

Not a shell: nothing is run, no branch is decided, every simple command of the script is given. What only running would
tell (a command's output, a variable the script does not set, a parameter operator) stays as written and is marked.
Source: POSIX.1-2024, Shell Command Language, sections 2.2 to 2.7; arrays as in bash.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import attrs

from moeplan.errors import InputError, Issue
from moeplan.manifests.shell_scope import DECLARING, Scope
from moeplan.manifests.shell_values import Field, Partial, Value, assigned, made, split, text_of

__all__ = ["MAX_SCRIPT", "ShellCommand", "ShellWord", "split_script"]

MAX_SCRIPT = 1 << 20
"""Most characters of a script, and of all its words after expansion."""

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=")
_PARAMETER = re.compile(
    r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)(\[[@*]\])?(:?[-=?][^}]*)?\}|([@*])|\(([A-Za-z_][A-Za-z0-9_.-]*)\))"
)
_REDIRECTION = re.compile(r"(?:[0-9]+|&)?(?:<<<|<<-?|<&|<>|>>|>&|>\||[<>])")
_PLACEHOLDER = re.compile(r"<[A-Za-z][A-Za-z0-9_.-]{0,60}>(?![A-Za-z0-9>&(])")
"""``<MODEL_DIR>``: to a shell a redirection, in what people write down a value still to be filled in."""
_RUN = re.compile(r"[^\s'\"\\$`;&|()<>#]+")
_QUOTED_RUN = re.compile(r'[^"\\$`]+')
_WHOLE_ARRAY = re.compile(r'"\$(?:@|\{[A-Za-z_][A-Za-z0-9_]*\[[@*]\]\})"')
_NESTING = re.compile(r"'[^']*'|\\.|[(){}]", re.DOTALL)
_RESERVED = frozenset(("then", "do", "else", "elif", "if", "while", "until", "!", "{", "}", "fi", "done", "time"))


@attrs.frozen
class ShellWord:
    """A word of a command.

    Attributes:
        text: the word, expanded as far as known.
        offset: where it begins in the script, in characters.
        line: how many line ends stand before it in the script.
        used: variables whose values went into it.
        unresolved: variables or substitutions in it whose values are not known.
    """

    text: str
    offset: int = 0
    line: int = 0
    used: tuple[str, ...] = ()
    unresolved: tuple[str, ...] = ()


@attrs.frozen
class ShellCommand:
    """A simple command: its words, and the environment the script gives it (None: not known)."""

    words: tuple[ShellWord, ...]
    environment: Mapping[str, str | None]


def split_script(
    text: str,
    variables: Mapping[str, str | None],
    positional: Sequence[str] | None = None,
    references: Mapping[str, str | None] | None = None,
    path: str = "$",
) -> tuple[ShellCommand, ...]:
    """Return the simple commands of a script in order.

    Args:
        text: the script.
        variables: what its environment sets; None where set and not known.
        positional: its arguments, for ``"$@"``; None where not known.
        references: variables that Kubernetes puts in for ``$(NAME)`` before the shell reads the script.
        path: JSON path of the script, for messages.

    Raises:
        InputError: a quote without an end, or more than :data:`MAX_SCRIPT` characters, expanded or not.
    """
    splitter = _Splitter(text, variables, positional, references or {}, path)
    splitter.run()
    return tuple(splitter.commands)


class _Splitter:
    """Reads a script from left to right."""

    def __init__(
        self,
        text: str,
        variables: Mapping[str, str | None],
        positional: Sequence[str] | None,
        references: Mapping[str, str | None],
        path: str,
    ) -> None:
        self.commands: list[ShellCommand] = []
        self._text = text
        self._references = references
        self._path = path
        self._at = 0
        self._scope = Scope(variables, positional)
        self._words: list[ShellWord] = []
        self._word: list[str] | None = None
        self._begin = 0
        self._used: list[str] = []
        self._unresolved: list[str] = []
        self._skip_next = False
        self._splitting = True
        self._here: list[str] = []
        self._wants_here = False
        self._size = 0
        self._counted = (0, 0)
        self._grow(len(text))
        self._size = 0

    def run(self) -> None:
        while self._at < len(self._text):
            self._step()
        self._end_command()

    def _step(self) -> None:
        text, at = self._text, self._at
        c = text[at]
        if self._word is None:
            self._begin = at
            if self._starts(c):
                return
        placeholder = _PLACEHOLDER.match(text, at) if c == "<" else None
        if placeholder is not None:
            self._add(placeholder[0])
            self._at = placeholder.end()
            return
        redirection = _REDIRECTION.match(text, at) if c in "<>&" or (self._word is None and c in "0123456789") else None
        if redirection is not None and (c != "&" or text.startswith("&>", at)):
            self._end_word()
            self._at = redirection.end()
            self._skip_next, self._wants_here = True, redirection[0].rstrip("-").endswith("<<")
        elif c in " \t\r":
            self._end_word()
            self._at += 1
        elif c in "\n;&|()":
            self._end_command()
            self._at += 1
            if c == "\n" and self._here:
                self._skip_here()
        else:
            self._part(c)

    def _starts(self, c: str) -> bool:
        """Take a comment or an assignment, which stand only where a word may begin; return whether there was one."""
        if c == "#":
            end = self._text.find("\n", self._at)
            self._at = len(self._text) if end < 0 else end
            return True
        match = _ASSIGNMENT.match(self._text, self._at)
        by = self._words[0].text if self._words else None
        if match is None or self._skip_next or not (by is None or by in DECLARING):
            return False
        self._at = match.end()
        value: Value = self._array() if self._text.startswith("(", self._at) else self._value()
        value = self._scope.assign(match[1], value, adds=bool(match[2]), by=by)
        self._grow(sum(len(text_of(one)) for one in (value if isinstance(value, tuple) else (value or "",))))
        return True

    def _value(self) -> Field | None:
        """Read an assignment's value: one word, not split; None where nothing of it is known."""
        self._word, self._splitting = [], False
        while self._at < len(self._text) and self._text[self._at] not in " \t\r\n;&|()<>":
            self._part(self._text[self._at])
        value = assigned("".join(self._word), self._unresolved)
        self._word, self._splitting, self._used, self._unresolved = None, True, [], []
        return value

    def _array(self) -> tuple[Field, ...]:
        outer, self._words = self._words, []
        self._at += 1
        while self._at < len(self._text) and self._text[self._at] != ")":
            c = self._text[self._at]
            if self._word is None:
                self._begin = self._at
            if c in " \t\r\n" or (c == "#" and self._word is None):
                self._end_word()
                self._at = self._text.find("\n", self._at) if c == "#" else self._at + 1
                if self._at < 0:
                    self._at = len(self._text)
            elif c in ";&|(<>":
                raise self._refused("an operator within an array", "words")
            else:
                self._part(c)
        if self._at >= len(self._text):
            raise self._refused("an array without its closing parenthesis", ")")
        self._end_word()
        self._at += 1
        items, self._words = self._words, outer
        return tuple(made(item.text, item.unresolved) for item in items)

    def _part(self, c: str) -> None:
        """Take the next part of a word: a quoted stretch, an escape, an expansion, or plain characters."""
        if c == "'":
            end = self._text.find("'", self._at + 1)
            if end < 0:
                raise self._refused("a quote without an end", "'")
            self._add(self._text[self._at + 1 : end])
            self._at = end + 1
        elif c == '"':
            self._double()
        elif c == "\\":
            following = self._text[self._at + 1 : self._at + 2]
            if following not in ("\n", ""):
                self._add(following)
            self._at += 2
        elif c in "$`":
            self._expansion(quoted=False)
        else:
            run = _RUN.match(self._text, self._at)
            taken = run[0] if run is not None else c
            self._add(taken)
            self._at += len(taken)

    def _double(self) -> None:
        begin = self._at
        if not _WHOLE_ARRAY.match(self._text, self._at):  # an empty array gives no word, not an empty one
            self._add("")
        self._at += 1
        while True:
            if self._at >= len(self._text):
                self._at = begin
                raise self._refused("a quote without an end", '"')
            c = self._text[self._at]
            if c == '"':
                self._at += 1
                return
            if c == "\\":
                following = self._text[self._at + 1 : self._at + 2]
                self._add("" if following == "\n" else following if following in '$`"\\' else c + following)
                self._at += 2
            elif c in "$`":
                self._expansion(quoted=True)
            else:
                run = _QUOTED_RUN.match(self._text, self._at)
                taken = run[0] if run is not None else c
                self._add(taken)
                self._at += len(taken)

    def _expansion(self, *, quoted: bool) -> None:
        match = _PARAMETER.match(self._text, self._at)
        if match is None or (match[6] is not None and match[6] not in self._references):
            self._substitution()
            return
        self._at = match.end()
        name = match[1] or match[2] or match[6] or "@"
        value: Value = self._scope.value(name) if match[6] is None else self._references[name]
        if value is None or (match[4] is not None and not value):
            self._add(match[0])
            self._unresolved.append(name)
            return
        self._used.append(name)
        every = match[3] is not None or match[5] is not None
        if isinstance(value, tuple) and not value:
            return
        listed = value if isinstance(value, tuple) else (value,)
        fields = list(listed) if every else [listed[0]]
        if not quoted and self._splitting:
            fields = [part for field in fields for part in split(field)]
        for index, field in enumerate(fields):
            if index and self._splitting:
                used = list(self._used)
                self._end_word()
                self._used = used
            self._add(text_of(field))
            self._unresolved.extend(field.unresolved if isinstance(field, Partial) else ())

    def _substitution(self) -> None:
        """Keep a command substitution or another ``$`` form as written, and mark it."""
        begin = self._at
        opener = self._text[begin : begin + 2]
        if opener.startswith("`"):
            end = self._text.find("`", begin + 1)
        elif opener in ("$(", "${"):
            end = self._closing(begin + 1)
        else:
            self._add("$")
            self._at += 1
            if opener[1:] in tuple("0123456789?#!-"):
                self._unresolved.append(opener)
            return
        if end < 0:
            raise self._refused("a substitution without an end", opener)
        written = self._text[begin : end + 1]
        self._add(written)
        self._unresolved.append(written[:80])
        self._at = end + 1

    def _closing(self, begin: int) -> int:
        opening, closing = self._text[begin], {"(": ")", "{": "}"}[self._text[begin]]
        depth = 0
        for match in _NESTING.finditer(self._text, begin):
            if match[0] == opening:
                depth += 1
            elif match[0] == closing:
                depth -= 1
                if depth == 0:
                    return match.start()
        return -1

    def _add(self, text: str) -> None:
        if self._word is None:
            self._word = []
        self._word.append(text)
        self._grow(len(text))

    def _grow(self, by: int) -> None:
        self._size += by
        if self._size > MAX_SCRIPT:
            message = "script too long, its variables written out"
            raise InputError(Issue(self._path, "script_too_long", message, f"at most {MAX_SCRIPT} characters"))

    def _end_word(self) -> None:
        if self._word is None:
            return
        seen, lines = self._counted
        lines += self._text.count("\n", seen, self._begin)
        self._counted = (self._begin, lines)
        used, unresolved = tuple(dict.fromkeys(self._used)), tuple(dict.fromkeys(self._unresolved))
        word = ShellWord("".join(self._word), self._begin, lines, used, unresolved)
        self._word, self._used, self._unresolved = None, [], []
        if self._skip_next:
            self._skip_next = False
            if self._wants_here:
                self._here.append(word.text)
        elif self._words or word.text not in _RESERVED:
            self._words.append(word)

    def _end_command(self) -> None:
        self._end_word()
        self._skip_next = False
        environment = self._scope.end_command([word.text for word in self._words])
        if environment is not None:
            self.commands.append(ShellCommand(tuple(self._words), environment))
        self._words = []

    def _skip_here(self) -> None:
        """Leave out the bodies of here-documents."""
        for delimiter in self._here:
            while self._at < len(self._text):
                end = self._text.find("\n", self._at)
                end = len(self._text) if end < 0 else end
                line = self._text[self._at : end].strip("\t")
                self._at = end + 1
                if line == delimiter:
                    break
        self._here = []

    def _refused(self, message: str, expected: str) -> InputError:
        line = self._text.count("\n", 0, self._at) + 1
        column = self._at - self._text.rfind("\n", 0, self._at)
        place = f"{message} at line {line} column {column} of the script"
        return InputError(Issue(self._path, "invalid_script", place, expected))
