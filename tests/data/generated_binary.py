"""Generates npy, npz, fvecs, bvecs and ivecs files."""

import io

import numpy as np
from generated_file import File
from generated_numbers import words

NPY_KINDS = words("""
    <f4 <f4 <f4 >f4 <f8 >f8 |i1 |u1 <i2 >i2 <u2 <i4 >i4 <u4 >u4 <i8 >i8 <u8 >u8 <f2 |b1 <c8 |S4
    <U2
""")


def npy_values(r):
    """An array, and whether the reader must read it."""
    kind = r.choice(NPY_KINDS)
    shape = r.choice(
        [(r.randrange(1, 6), r.randrange(1, 6))] * 6
        + [(r.randrange(1, 6),), (), (2, 2, 2), (0, 3), (3, 0)]
    )
    g = np.random.default_rng(r.randrange(2**32))
    if kind[1] in "iu":
        info = np.iinfo(np.dtype(kind))
        values = g.integers(
            info.min, info.max, size=shape, dtype=np.dtype(kind).newbyteorder("="), endpoint=True
        )
        if values.itemsize == 8 and r.random() < 0.3:  # halfway between floats, or next to that
            values = values // 2**20 * 2**20 + values.dtype.type(r.choice([0, 1, 2**19]))
    else:
        values = g.normal(size=shape) * 10.0 ** r.uniform(-45, 38.5)
        if r.random() < 0.05:
            values = values * np.nan
    with np.errstate(all="ignore"):
        values = np.asarray(values).astype(np.dtype(kind))
    if r.random() < 0.4 and values.ndim == 2:
        values = np.asfortranarray(values)
    plain = kind[1] in "fiu" and values.ndim in (1, 2) and values.size > 0
    with np.errstate(all="ignore"):
        plain = plain and bool(np.isfinite(values.astype(np.float32)).all())
    return values, plain


def npz_file(random_):
    r = random_
    file = File()
    file.format = "npz"
    names = r.sample(["points", "arr_0", "labels", "x", "ü", "a b"], r.choice([1, 1, 2, 3]))
    made = {name: npy_values(r) for name in names}
    buffer = io.BytesIO()
    save = r.choice([np.savez, np.savez_compressed])
    save(buffer, **{name: values for name, (values, _) in made.items()})
    file.array = r.choice(names) if len(names) > 1 or r.random() < 0.3 else ""
    file.values, file.plain = made[file.array or names[0]]
    if r.random() < 0.1:
        file.array = r.choice(["", "other"])
        if file.array or len(names) > 1:
            file.values, file.plain = None, False
    raw = bytearray(buffer.getvalue())
    if r.random() < 0.5:
        file.plain = False
        for _ in range(r.randrange(1, 4)):
            at = r.randrange(len(raw)) if r.random() < 0.5 else -r.randrange(1, 80)
            change = r.randrange(4)
            if change == 0:
                raw[at] = r.randrange(256)
            elif change == 1:
                raw[at] ^= 1 << r.randrange(8)
            elif change == 2:
                del raw[at]
            else:
                raw[at:at] = bytes([r.randrange(256)])
        if r.random() < 0.2:
            raw = raw[: r.randrange(len(raw) + 1)]
    file.raw = bytes(raw)
    return file


def npy_file(random_):
    r = random_
    file = File()
    file.format = "npy"
    values, file.plain = npy_values(r)
    buffer = io.BytesIO()
    np.lib.format.write_array(
        buffer, values, version=r.choice([None, (1, 0), (2, 0), (3, 0)]), allow_pickle=False
    )
    raw = bytearray(buffer.getvalue())
    if r.random() < 0.5:
        file.plain = False
        header_end = raw.index(b"\n") + 1
        for _ in range(r.randrange(1, 4)):
            at = (
                r.randrange(min(len(raw), header_end))
                if r.random() < 0.9
                else r.randrange(len(raw))
            )
            change = r.randrange(5)
            if change == 0:
                raw[at] = r.randrange(256)
            elif change == 1:
                raw[at] = r.choice(b"0123456789<>|=fiu'\"(),TFL_+-. ")
            elif change == 2:
                del raw[at]
            elif change == 3:
                raw[at:at] = bytes([r.choice(b"0123456789 ,L)_+-x'\"#\\")])
            elif b"(" in raw:
                at = raw.index(b"(") + 1
                raw[at:at] = r.choice(
                    [b"0", b"00", b"0x", b"1_", b"+", b"-", b" ", b"1*", b"(", b"True,"]
                )
        if r.random() < 0.2:
            raw = raw[: r.randrange(len(raw) + 1)]
        if r.random() < 0.1:
            raw += b"x" * r.randrange(1, 5)
    file.raw = bytes(raw)
    return file


VECS_TYPES = {"fvecs": "<f4", "bvecs": "u1", "ivecs": "<i4"}


def vecs_file(random_):
    r = random_
    file = File()
    file.format = r.choice(list(VECS_TYPES))
    kind = np.dtype(VECS_TYPES[file.format])
    dim, n = r.randrange(1, 6), r.randrange(1, 6)
    g = np.random.default_rng(r.randrange(2**32))
    if kind.kind == "f":
        values = g.normal(size=(n, dim)).astype(kind)
    else:
        info = np.iinfo(kind)
        values = g.integers(info.min, info.max, size=(n, dim), dtype=kind, endpoint=True)
    raw = bytearray(b"".join(np.int32(dim).tobytes() + row.tobytes() for row in values))
    if r.random() < 0.5:
        file.plain = False
        for _ in range(r.randrange(1, 4)):
            at = r.randrange(len(raw))
            change = r.randrange(3)
            if change == 0:
                raw[at] = r.randrange(256)
            elif change == 1:
                del raw[at : at + r.choice([1, 4])]
            else:
                raw[at:at] = bytes(r.choice([1, 4]))
            if not raw:
                break
    file.raw = bytes(raw)
    return file
