//! Vector code of the page pass, chosen at run time: AVX2 where the processor has it, NEON on aarch64, else plain Rust.
//! Sets of sixteen bytes are SSE2, which every x86-64 processor has, else plain Rust.
//!
//! Invariant: all ways give the same results, bit by bit. The `unsafe` code of the core is here and nowhere else: calls
//! of functions that are compiled for instructions which were detected or which the target has, and loads from slices
//! whose length was checked.

mod bytes;
mod leaves;
pub mod md5;

pub use bytes::{sixteen, Sixteen};
pub use leaves::{add_leaves, Tree, LINES};

/// Work that is worth wider vectors: loops that the compiler turns into vector code by itself.
pub trait Work {
    type Found;
    /// Must be `#[inline(always)]`, with all it calls in its loops: only inlined code is compiled for wide vectors.
    fn run(self) -> Self::Found;
}

/// Do the work by code for AVX2 where the processor has it, else by code for any processor of the target.
#[inline]
pub fn widest<W: Work>(work: W) -> W::Found {
    #[cfg(target_arch = "x86_64")]
    if has_avx2() {
        // SAFETY: the processor has the instructions.
        return unsafe { on_avx2(work) };
    }
    work.run()
}

/// Whether code for AVX2 and the instructions that came with it can run. A look-up after the first call.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn has_avx2() -> bool {
    std::is_x86_feature_detected!("avx2")
        && std::is_x86_feature_detected!("bmi1")
        && std::is_x86_feature_detected!("bmi2")
        && std::is_x86_feature_detected!("lzcnt")
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
unsafe fn on_avx2<W: Work>(work: W) -> W::Found {
    work.run()
}
