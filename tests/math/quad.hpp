// Functions of libquadmath. GCC declares them in <quadmath.h>, which Clang does not have; the library links with both.
#pragma once

#if __has_include(<quadmath.h>)
#include <quadmath.h>
#else
extern "C" {
#define LOCKSTEP_QUAD1(name) __float128 name##q(__float128) noexcept;
#define LOCKSTEP_QUAD2(name) __float128 name##q(__float128, __float128) noexcept;
int signbitq(__float128) noexcept;
LOCKSTEP_QUAD1(acos)
LOCKSTEP_QUAD1(asin)
LOCKSTEP_QUAD1(atan)
LOCKSTEP_QUAD2(atan2)
LOCKSTEP_QUAD1(cbrt)
LOCKSTEP_QUAD1(ceil)
LOCKSTEP_QUAD1(cos)
LOCKSTEP_QUAD1(cosh)
LOCKSTEP_QUAD1(erf)
LOCKSTEP_QUAD1(exp)
LOCKSTEP_QUAD1(exp2)
LOCKSTEP_QUAD1(expm1)
LOCKSTEP_QUAD1(fabs)
LOCKSTEP_QUAD1(floor)
LOCKSTEP_QUAD2(fmod)
LOCKSTEP_QUAD2(hypot)
LOCKSTEP_QUAD1(log)
LOCKSTEP_QUAD1(log10)
LOCKSTEP_QUAD1(log1p)
LOCKSTEP_QUAD1(log2)
LOCKSTEP_QUAD2(pow)
LOCKSTEP_QUAD1(rint)
LOCKSTEP_QUAD1(sin)
LOCKSTEP_QUAD1(sinh)
LOCKSTEP_QUAD1(sqrt)
LOCKSTEP_QUAD1(tan)
LOCKSTEP_QUAD1(tanh)
LOCKSTEP_QUAD1(trunc)
#undef LOCKSTEP_QUAD1
#undef LOCKSTEP_QUAD2
}
#endif
