"""Digest a checkpoint directory into its manifest, and verify a directory against one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

import attrs

from moeplan.checkpoint.hashing import Progress, changed, hash_files, open_listed
from moeplan.checkpoint.index import INDEX_NAME, MAX_INDEX_BYTES, compare_index
from moeplan.checkpoint.listing import ListedFile, list_files
from moeplan.checkpoint.safetensors import TensorHeader, read_header
from moeplan.checkpoint.tensor_digests import TensorDigester, refuse_repeated, tensor_table
from moeplan.errors import InputError, Issue, StoreError, escape
from moeplan.model.checkpoint import CheckpointFile, CheckpointIndex, CheckpointManifest, Tensor, root_digest
from moeplan.model.finding import Finding
from moeplan.model.series import TensorDigestTable

__all__ = ["OTHER_WEIGHTS", "Digested", "digest_checkpoint", "verify_checkpoint"]

OTHER_WEIGHTS = (".bin", ".ckpt", ".gguf", ".h5", ".msgpack", ".npz", ".onnx", ".pt", ".pth")
"""Suffixes of weight formats whose tensors are not read; such files are digested like any other."""

_SHARD = re.compile(r"(.+)-([0-9]{5})-of-([0-9]{5})\.safetensors", re.ASCII)
"""Numbered shards. Source: huggingface_hub, ``serialization/_base.py``, filename pattern of split checkpoints."""


@attrs.frozen
class Digested:
    """A checkpoint's manifest, and what a person should know about how it came out.

    ``tensors``: the digest of each tensor's bytes; None where it was not asked for.
    """

    manifest: CheckpointManifest
    findings: tuple[Finding, ...]
    tensors: TensorDigestTable | None = None

    @property
    def total_bytes(self) -> int:
        """The sum of all files' sizes in bytes."""
        return sum(file.size for file in self.manifest.files)


def digest_checkpoint(
    directory: Path | str,
    *,
    repository: str | None = None,
    revision: str | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    tensor_digests: bool = False,
) -> Digested:
    """Return the manifest of a checkpoint directory: every file hashed, every safetensors header read.

    The headers are read first, so a corrupt file is refused before the long hashing begins; the directory is listed
    again at the end, so a file added, removed or altered meanwhile is refused too.

    Args:
        directory: the checkpoint; :func:`moeplan.checkpoint.listing.list_files` says which files count.
        repository: ``owner/name`` it was published under, a declaration that nothing here proves.
        revision: its immutable revision, 40 hex digits, likewise declared.
        workers: hashing threads; the CPUs this process may use where None.
        progress: told bytes done and bytes in all.
        tensor_digests: also digest each tensor's bytes, while its file is read.

    Raises:
        StoreError: a file vanished, changed while it was read, or cannot be read.
        InputError: a safetensors file is corrupt (``source`` names it), or a name, repository or revision is refused;
            with ``tensor_digests`` two files hold a tensor of one name, or no file holds one.
    """
    _check_declared(repository=repository, revision=revision)
    files = list_files(directory)
    headers = _read_headers(files)
    tensors = _inventory(headers)
    index, findings = _read_index(files, tensors)
    sizes = {file.name: file.size for file in files}
    digesters = {name: TensorDigester(held, sizes[name]) for name, held in headers.items()} if tensor_digests else {}
    if tensor_digests:
        refuse_repeated(headers)
    watchers = {name: digester.feed for name, digester in digesters.items()}
    digests = hash_files(files, workers=workers, progress=progress, watchers=watchers)
    _require_unchanged(files, directory)
    listed = tuple(CheckpointFile(name=file.name, size=file.size, digest=digests[file.name]) for file in files)
    manifest = CheckpointManifest(
        repository=repository,
        revision=revision,
        root=root_digest(listed),
        tensor_bytes=sum(tensor.bytes for tensor in tensors),
        index=index,
        files=listed,
        tensors=tensors,
    )
    table = tensor_table(headers, digesters) if tensor_digests else None
    return Digested(manifest, (*findings, *_remarks(files, tensors, index)), table)


def _check_declared(**declared: str | None) -> None:
    """Refuse a declaration that the manifest would refuse, before the long hashing."""
    fields = attrs.fields_dict(CheckpointManifest)
    for name, value in declared.items():
        try:
            fields[name].validator(None, fields[name], value)  # type: ignore[misc]
        except InputError as error:
            raise InputError(*(attrs.evolve(issue, path=f"--{name}") for issue in error.issues)) from None


def verify_checkpoint(
    manifest: CheckpointManifest,
    directory: Path | str,
    *,
    workers: int | None = None,
    progress: Progress | None = None,
) -> tuple[Finding, ...]:
    """Return every difference between a manifest and a directory; none where they are the same.

    Named are files missing, extra, of another size, and of another digest (only files of the stated size are hashed).
    Where all files are equal, the headers are read too: a tensor inventory or an index that the files do not bear out
    is an error of the manifest.

    Raises:
        StoreError: the directory or a file cannot be read, or changes meanwhile.
        InputError: a safetensors file is corrupt, though it is the file the manifest lists.
    """
    files = list_files(directory)
    here = {file.name: file for file in files}
    stated = {file.name: file for file in manifest.files}
    findings = [_difference("file_missing", name, "listed, but not there") for name in stated if name not in here]
    findings += [_difference("file_extra", name, "there, but not listed") for name in here if name not in stated]
    same_size = []
    for name in sorted(here.keys() & stated.keys()):
        if here[name].size == stated[name].size:
            same_size.append(here[name])
        else:
            sizes = f"{here[name].size} bytes, expected {stated[name].size} bytes"
            findings.append(_difference("file_size", name, sizes))
    for name, digest in sorted(hash_files(same_size, workers=workers, progress=progress).items()):
        if digest != stated[name].digest:
            findings.append(_difference("file_digest", name, f"{digest}, expected {stated[name].digest}"))
    _require_unchanged(files, directory)
    if not findings:
        findings += _compare_content(manifest, files)
    return tuple(sorted(findings, key=lambda finding: (finding.where or "", finding.code)))


def _difference(code: str, name: str, message: str) -> Finding:
    shown = escape(name, 400)
    return Finding(code=code, severity="error", message=f"{shown}: {message}", where=shown)


def _compare_content(manifest: CheckpointManifest, files: Sequence[ListedFile]) -> Iterable[Finding]:
    tensors = _inventory(_read_headers(files))
    index, _ = _read_index(files, tensors)
    if tensors != manifest.tensors:
        yield _difference("tensors_differ", "tensors", "the manifest's inventory is not what the headers hold")
    if index != manifest.index:
        yield _difference("index_differs", INDEX_NAME, "the manifest's account of the index is not what it holds")


def _read_headers(files: Sequence[ListedFile]) -> dict[str, tuple[TensorHeader, ...]]:
    """Return the tensors of each safetensors file, by the file's name."""
    found = {}
    for file in files:
        if file.name.endswith(".safetensors"):
            with open_listed(file) as stream:
                found[file.name] = read_header(stream, file.size, file.name)
    return found


def _inventory(headers: Mapping[str, Sequence[TensorHeader]]) -> tuple[Tensor, ...]:
    found = [
        Tensor(name=h.name, file=file, dtype=h.dtype, shape=h.shape, bytes=h.bytes)
        for file, held in headers.items()
        for h in held
    ]
    return tuple(sorted(found, key=lambda tensor: (tensor.file, tensor.name)))


def _read_index(
    files: Sequence[ListedFile], tensors: Sequence[Tensor]
) -> tuple[CheckpointIndex | None, tuple[Finding, ...]]:
    file = next((file for file in files if file.name == INDEX_NAME), None)
    if file is None:
        return None, ()
    with open_listed(file) as stream:
        data = stream.read(MAX_INDEX_BYTES + 1)
    return compare_index(data, tensors)


def _require_unchanged(files: Sequence[ListedFile], directory: Path | str) -> None:
    again = {file.name: file for file in list_files(directory)}
    for file in files:
        now = again.pop(file.name, None)
        if now is None or now.stamp != file.stamp:
            raise changed(file)
    if again:
        where = escape(str(next(iter(again.values())).path), 400)
        raise StoreError(
            Issue(where, "changed_while_read", "file appeared while the others were read", "a directory at rest")
        )


def _missing_shards(names: Iterable[str]) -> Iterable[Finding]:
    """Yield a finding for each numbered set of safetensors files, ``x-00001-of-00005``, that is not whole."""
    sets: dict[tuple[str, int], set[int]] = {}
    for name in names:
        match = _SHARD.fullmatch(name)
        if match:
            sets.setdefault((match[1], int(match[3])), set()).add(int(match[2]))
    for (stem, total), numbers in sorted(sets.items()):
        if len(numbers) != total or numbers != set(range(1, total + 1)):
            message = f"{len(numbers)} of {total} numbered files are here"
            where = escape(f"{stem}-?????-of-{total:05d}.safetensors", 400)
            yield Finding(code="shards_missing", severity="error", message=message, where=where)


def _remarks(
    files: Sequence[ListedFile], tensors: Sequence[Tensor], index: CheckpointIndex | None
) -> Iterable[Finding]:
    shards = {tensor.file for tensor in tensors}
    yield from _missing_shards(file.name for file in files)
    if index is None and len(shards) > 1:
        message = f"{len(shards)} safetensors files and no {INDEX_NAME}: nothing says that the set is complete"
        yield Finding(code="index_missing", severity="warning", message=message, where=INDEX_NAME)
        repeated = [name for name, count in Counter(tensor.name for tensor in tensors).items() if count > 1]
        if repeated:
            message = f"{len(repeated)} tensors are in more than one file, {escape(min(repeated))} among them"
            yield Finding(code="tensor_repeated", severity="error", message=message, where=None)
    others = [file for file in files if PurePosixPath(file.name).suffix.lower() in OTHER_WEIGHTS]
    if others:
        size = sum(file.size for file in others)
        message = (
            f"{len(others)} files ({size} bytes) are of weight formats whose tensors are not read, "
            f"{escape(others[0].name)} among them: tensorBytes counts safetensors tensors only"
        )
        yield Finding(code="tensors_not_read", severity="warning", message=message, where=escape(others[0].name, 400))
    elif not tensors:
        message = "no safetensors file holds a tensor: tensorBytes is 0"
        yield Finding(code="tensors_not_read", severity="warning", message=message, where=None)
