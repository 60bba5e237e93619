// The vector types of Tenstorrent's compiler are not here: only kernels of the matrix engine are compiled.
#pragma once
namespace sfpi {}
