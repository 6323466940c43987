"""The kernels of `detmap.kernels.scanning.words` as instructions of LLVM, for numba.

They are the same for every platform: LLVM makes of them what the processor has.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from detmap.kernels import Kernel

MODULE = "detmap.kernels.scanning.words"


def instructions(kernel: Kernel[Any, Any]) -> Any:
    """The numba function of a kernel that is instructions; None for others."""
    if kernel.__module__ != MODULE:
        return None
    return {**loads(), **arithmetic()}[kernel.__name__]


@cache
def loads() -> dict[str, Any]:
    """Bytes of a text at any place."""
    from llvmlite import ir
    from numba.core import types
    from numba.extending import intrinsic

    word, block = ir.IntType(64), ir.VectorType(ir.IntType(8), 64)

    def loaded(context: Any, builder: Any, signature: Any, args: Any, kind: Any) -> Any:
        text = context.make_array(signature.args[0])(context, builder, args[0])
        place = builder.gep(text.data, [args[1]])
        value = builder.load(builder.bitcast(place, kind.as_pointer()))
        value.align = 1
        return value

    def word_code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return loaded(context, builder, signature, args, word)

    def separator_code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        text = loaded(context, builder, signature, args, block)
        closing = builder.or_(text, ir.Constant(block, [ord("]") ^ ord("}")] * 64))
        commas = builder.icmp_unsigned("==", text, ir.Constant(block, [ord(",")] * 64))
        closings = builder.icmp_unsigned("==", closing, ir.Constant(block, [ord("}")] * 64))
        return builder.bitcast(builder.or_(commas, closings), word)

    @intrinsic
    def load_word(context: Any, text: Any, at: Any) -> Any:
        return types.uint64(text, types.int64), word_code

    @intrinsic
    def find_separators(context: Any, text: Any, at: Any) -> Any:
        return types.uint64(text, types.int64), separator_code

    return {each._name: each for each in (load_word, find_separators)}


@cache
def arithmetic() -> dict[str, Any]:
    """Operations on words of 64 bits that Python's numbers lack."""
    from llvmlite import ir
    from numba.core import types
    from numba.extending import intrinsic

    word, wide, bit = ir.IntType(64), ir.IntType(128), ir.IntType(1)
    pair: Any = types.Tuple((types.uint64, types.uint64))  # type: ignore[no-untyped-call]

    def zeros_code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(bit, 0))

    def leading_code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctlz(args[0], ir.Constant(bit, 0))

    def count_code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    def product_code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        product = builder.mul(*[builder.zext(each, wide) for each in args])
        high = builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), word)
        low = builder.trunc(product, word)
        return context.make_tuple(builder, signature.return_type, (high, low))

    @intrinsic
    def trailing_zeros(context: Any, number: Any) -> Any:
        return types.int64(types.uint64), zeros_code

    @intrinsic
    def leading_zeros(context: Any, number: Any) -> Any:
        return types.int64(types.uint64), leading_code

    @intrinsic
    def count_bits(context: Any, number: Any) -> Any:
        return types.int64(types.uint64), count_code

    @intrinsic
    def multiply(context: Any, a: Any, b: Any) -> Any:
        return pair(types.uint64, types.uint64), product_code

    return {each._name: each for each in (trailing_zeros, leading_zeros, count_bits, multiply)}
