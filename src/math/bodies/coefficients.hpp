// Polynomial coefficients of the elementary functions, lowest power first.
// Written by scripts/fit_math.py; docs/design/math.md says what each one approximates.
#pragma once

#include <array>

#include "lockstep/kernel/value.hpp"

namespace lockstep::math {

// (e^r - 1 - r) / r^2
template <class T>
inline constexpr std::array<T, 0> kExp{};
// largest weighted error 2^-28.1
template <>
inline constexpr std::array<f32, 5> kExp<f32>{
    0x1.0000000000000p-1f, 0x1.5554880000000p-3f,  0x1.5554ba0000000p-5f,
    0x1.123fee0000000p-7f, 0x1.6d9b5c0000000p-10f,
};
// largest weighted error 2^-63.83
template <>
inline constexpr std::array<f64, 11> kExp<f64>{
    0x1.0000000000000p-1,  0x1.555555555555cp-3,  0x1.5555555555556p-5,  0x1.111111110e97cp-7,
    0x1.6c16c16c161dbp-10, 0x1.a01a01b491c45p-13, 0x1.a01a01a66b3d9p-16, 0x1.71dded86fe683p-19,
    0x1.27e4de475c55bp-22, 0x1.af704be520730p-26, 0x1.1f6b99037e6bbp-29,
};

// (2^r - 1) / r
template <class T>
inline constexpr std::array<T, 0> kExp2{};
// largest weighted error 2^-32.53
template <>
inline constexpr std::array<f32, 7> kExp2<f32>{
    0x1.62e4300000000p-1f,  0x1.ebfbe00000000p-3f,  0x1.c6b0740000000p-5f,  0x1.3b2a5a0000000p-7f,
    0x1.5d9c860000000p-10f, 0x1.4411720000000p-13f, 0x1.ed058a0000000p-17f,
};
// largest weighted error 2^-59.85
template <>
inline constexpr std::array<f64, 13> kExp2<f64>{
    0x1.62e42fefa39efp-1,   0x1.ebfbdff82c58fp-3,  0x1.c6b08d704a234p-5,  0x1.3b2ab6fba4d2fp-7,
    0x1.5d87fe784a4b0p-10,  0x1.430912f8c1658p-13, 0x1.ffcbfecad1ceap-17, 0x1.62c0211aef4c9p-20,
    0x1.b51d25913dd4bp-24,  0x1.e4d2943378108p-28, 0x1.0140fc09eeee5p-31, 0x1.c0bde1b91be0dp-36,
    -0x1.dee580b699d8ep-36,
};

// (log(1 + f) - f + f^2/2) / f^3
template <class T>
inline constexpr std::array<T, 0> kLog{};
// largest weighted error 2^-29.28
template <>
inline constexpr std::array<f32, 9> kLog<f32>{
    0x1.5555480000000p-2f,  -0x1.00006e0000000p-2f, 0x1.99a53c0000000p-3f,
    -0x1.552fbc0000000p-3f, 0x1.23042a0000000p-3f,  -0x1.00fbba0000000p-3f,
    0x1.efda6a0000000p-4f,  -0x1.bf6b5a0000000p-4f, 0x1.b6792a0000000p-5f,
};

// (log2(1 + f) - f log2(e)) / f^2
template <class T>
inline constexpr std::array<T, 0> kLog2{};
// largest weighted error 2^-29.48
template <>
inline constexpr std::array<f32, 10> kLog2<f32>{
    -0x1.7154760000000p-1f, 0x1.ec70860000000p-2f, -0x1.7154d60000000p-2f, 0x1.277fcc0000000p-2f,
    -0x1.ec61b40000000p-3f, 0x1.a3e8fe0000000p-3f, -0x1.6fe5b60000000p-3f, 0x1.622ea80000000p-3f,
    -0x1.529d820000000p-3f, 0x1.72deae0000000p-4f,
};

// (log10(1 + f) - f log10(e)) / f^2
template <class T>
inline constexpr std::array<T, 0> kLog10{};
// largest weighted error 2^-30.53
template <>
inline constexpr std::array<f32, 10> kLog10<f32>{
    -0x1.bcb7b20000000p-3f, 0x1.287a600000000p-3f, -0x1.bcb69a0000000p-4f, 0x1.63d48c0000000p-4f,
    -0x1.28b6a00000000p-4f, 0x1.f979c40000000p-5f, -0x1.b23d020000000p-5f, 0x1.a326b80000000p-5f,
    -0x1.c695080000000p-5f, 0x1.26c5620000000p-5f,
};

// (2 atanh(s) - 2 s) / s^3 in z = s^2
template <class T>
inline constexpr std::array<T, 0> kLogRatio{};
// largest weighted error 2^-58.47
template <>
inline constexpr std::array<f64, 7> kLogRatio<f64>{
    0x1.5555555555592p-1, 0x1.999999997ff1fp-2, 0x1.24924941de100p-2, 0x1.c71c52196a4efp-3,
    0x1.74663b74a1b0ap-3, 0x1.39a2178b2a0b9p-3, 0x1.2f019e590c3dfp-3,
};

// (2 atanh(s) / s - 2 - 2/3 z) / z^2 log2(e) in z = s^2
template <class T>
inline constexpr std::array<T, 0> kPowLog{};
// largest weighted error 2^-35.24
template <>
inline constexpr std::array<f32, 3> kPowLog<f32>{
    0x1.27770e0000000p-1f,
    0x1.a5bbfa0000000p-2f,
    0x1.59edfa0000000p-2f,
};
// largest weighted error 2^-71.93
template <>
inline constexpr std::array<f64, 8> kPowLog<f64>{
    0x1.2776c50ef9bfcp-1, 0x1.a61762a7aeddcp-2, 0x1.484b13d6ad150p-2, 0x1.0c9a853adca5ep-2,
    0x1.c68ee96d965e7p-3, 0x1.8a09b59834739p-3, 0x1.58fcfb57066a9p-3, 0x1.61ef4a5430082p-3,
};

// (sin r - r) / r^3 in z = r^2
template <class T>
inline constexpr std::array<T, 0> kSin{};
// largest weighted error 2^-32.48
template <>
inline constexpr std::array<f32, 4> kSin<f32>{
    -0x1.5555560000000p-3f,
    0x1.1111740000000p-7f,
    -0x1.a059200000000p-13f,
    0x1.7c11ee0000000p-19f,
};
// largest weighted error 2^-63.21
template <>
inline constexpr std::array<f64, 7> kSin<f64>{
    -0x1.5555555555555p-3,  0x1.111111111106ap-7,  -0x1.a01a019ffea60p-13, 0x1.71de3a343c8b7p-19,
    -0x1.ae642d45a5e04p-26, 0x1.610a72f4d92f7p-33, -0x1.a062cfdc63e99p-41,
};

// (cos r - 1 + r^2/2) / r^4 in z = r^2
template <class T>
inline constexpr std::array<T, 0> kCos{};
// largest weighted error 2^-33.13
template <>
inline constexpr std::array<f32, 3> kCos<f32>{
    0x1.55554a0000000p-5f,
    -0x1.6c0c1a0000000p-10f,
    0x1.99e0e80000000p-16f,
};
// largest weighted error 2^-64.09
template <>
inline constexpr std::array<f64, 6> kCos<f64>{
    0x1.555555555554bp-5,   -0x1.6c16c16c15003p-10, 0x1.a01a019c8b2e5p-16,
    -0x1.27e4f7ed07247p-22, 0x1.1ee9d799249dbp-29,  -0x1.8fa3c7319b16ep-37,
};

// (tan r - r) / r^3 in z = r^2
template <class T>
inline constexpr std::array<T, 0> kTan{};
// largest weighted error 2^-29.33
template <>
inline constexpr std::array<f32, 7> kTan<f32>{
    0x1.5555620000000p-2f, 0x1.110d1a0000000p-3f,   0x1.baf0bc0000000p-5f, 0x1.5bd54c0000000p-6f,
    0x1.678d8c0000000p-7f, -0x1.692e1c0000000p-14f, 0x1.248d1c0000000p-8f,
};
// largest weighted error 2^-59.73
template <>
inline constexpr std::array<f64, 15> kTan<f64>{
    0x1.555555555555fp-2,  0x1.111111111049ap-3,   0x1.ba1ba1bacfcd5p-5,  0x1.664f485996220p-6,
    0x1.226e3af4d8f3cp-7,  0x1.d6d2d4cec38ffp-9,   0x1.7db29baf7e27ep-10, 0x1.34b19b6046b97p-11,
    0x1.ffc48be9b9438p-13, 0x1.5b777a320bff2p-14,  0x1.1f726f8c70cebp-14, -0x1.ca042e390bff0p-16,
    0x1.a3b677a383292p-15, -0x1.a2eba10c30086p-16, 0x1.4e0545a7c1ccfp-17,
};

// (atan a - a) / a^3 in z = a^2
template <class T>
inline constexpr std::array<T, 0> kAtan{};
// largest weighted error 2^-28.46
template <>
inline constexpr std::array<f32, 9> kAtan<f32>{
    -0x1.55553e0000000p-2f, 0x1.9991e40000000p-3f,  -0x1.2420a40000000p-3f,
    0x1.c08f960000000p-4f,  -0x1.581a140000000p-4f, 0x1.da7eec0000000p-5f,
    -0x1.fe5bb00000000p-6f, 0x1.6548300000000p-7f,  -0x1.d5bc1c0000000p-10f,
};
// largest weighted error 2^-57.58
template <>
inline constexpr std::array<f64, 20> kAtan<f64>{
    -0x1.5555555555526p-2, 0x1.99999999955b0p-3,  -0x1.249249237f460p-3,  0x1.c71c717fcb42ap-4,
    -0x1.745d11ae2bcf4p-4, 0x1.3b136696efa1ep-4,  -0x1.110e510d6b8f3p-4,  0x1.e1bba5445e9b5p-5,
    -0x1.ae5e6dbc5e134p-5, 0x1.82dac6ef9b268p-5,  -0x1.59a3d43f8c5aep-5,  0x1.2c2e06c5d49bep-5,
    -0x1.e9f900abfeb58p-6, 0x1.683b83258f871p-6,  -0x1.c78d6d3714316p-7,  0x1.d7b5d2c987be0p-8,
    -0x1.7a3633e167558p-9, 0x1.b3f605f015ad9p-11, -0x1.3f3230819fc9fp-13, 0x1.bbe70f7c5dab1p-17,
};

// (asin x - x) / x^3 in z = x^2
template <class T>
inline constexpr std::array<T, 0> kAsin{};
// largest weighted error 2^-31.69
template <>
inline constexpr std::array<f32, 6> kAsin<f32>{
    0x1.55554c0000000p-3f, 0x1.3338ac0000000p-4f, 0x1.6ca7540000000p-5f,
    0x1.04d2e20000000p-5f, 0x1.d5245e0000000p-7f, 0x1.34c3ce0000000p-5f,
};
// largest weighted error 2^-59.81
template <>
inline constexpr std::array<f64, 13> kAsin<f64>{
    0x1.5555555555577p-3, 0x1.333333332e109p-4, 0x1.6db6db7215688p-5, 0x1.f1c71a93856f8p-6,
    0x1.6e8bdf0f0c18dp-6, 0x1.1c49ecb3e04e3p-6, 0x1.ca1fecd9ceaabp-7, 0x1.758246383f5fcp-7,
    0x1.614fe9b440736p-7, 0x1.e4c22c055167dp-9, 0x1.63fe16f041f74p-6, -0x1.588d301704820p-6,
    0x1.0b754ea32b768p-5,
};

// (sinh x - x) / x^3 in z = x^2
template <class T>
inline constexpr std::array<T, 0> kSinh{};
// largest weighted error 2^-31.61
template <>
inline constexpr std::array<f32, 4> kSinh<f32>{
    0x1.5555560000000p-3f,
    0x1.1110e00000000p-7f,
    0x1.a022b60000000p-13f,
    0x1.756dfa0000000p-19f,
};
// largest weighted error 2^-61.78
template <>
inline constexpr std::array<f64, 7> kSinh<f64>{
    0x1.5555555555556p-3,  0x1.111111111101ep-7,  0x1.a01a01a037274p-13, 0x1.71de3a3b0566fp-19,
    0x1.ae646ff6dab31p-26, 0x1.6116f39b002fcp-33, 0x1.b5c900222a1d1p-41,
};

// (tanh x - x) / x^3 in z = x^2
template <class T>
inline constexpr std::array<T, 0> kTanh{};
// largest weighted error 2^-29.39
template <>
inline constexpr std::array<f32, 5> kTanh<f32>{
    -0x1.5555480000000p-2f, 0x1.110c5e0000000p-3f,  -0x1.b906280000000p-5f,
    0x1.5818a80000000p-6f,  -0x1.948c180000000p-8f,
};
// largest weighted error 2^-59.73
template <>
inline constexpr std::array<f64, 11> kTanh<f64>{
    -0x1.555555555554bp-2,  0x1.1111111110246p-3,  -0x1.ba1ba1b9301b9p-5,  0x1.664f4848362b8p-6,
    -0x1.226e2ce2d8094p-7,  0x1.d6d243519f1cep-9,  -0x1.7d8b664cc4a4bp-10, 0x1.345f525506913p-11,
    -0x1.e7fe249a0d9d1p-13, 0x1.595184f9dba96p-14, -0x1.3cdbad4cacc10p-16,
};

// (erf x - x) / x in z = x^2
template <class T>
inline constexpr std::array<T, 0> kErfSmall{};
// largest weighted error 2^-29.39
template <>
inline constexpr std::array<f32, 7> kErfSmall<f32>{
    0x1.06eba80000000p-3f, -0x1.81273e0000000p-2f,  0x1.ce2ce60000000p-4f,  -0x1.b7f71a0000000p-6f,
    0x1.53f2240000000p-8f, -0x1.a3515c0000000p-11f, 0x1.4771ec0000000p-14f,
};
// largest weighted error 2^-56.37
template <>
inline constexpr std::array<f64, 14> kErfSmall<f64>{
    0x1.06eba8214db69p-3,  -0x1.812746b037a2fp-2,  0x1.ce2f21a046982p-4,  -0x1.b82ce313d4e70p-6,
    0x1.565bcd48bcf1dp-8,  -0x1.c02dc036e94ddp-11, 0x1.f9a4cbe9a8cbdp-14, -0x1.f4f860d0bf874p-17,
    0x1.bc40f365da9dfp-20, -0x1.790c178c5baaep-23, 0x1.ba7894a6f7389p-26, -0x1.0935599d53c02p-27,
    0x1.40c759d8b3df5p-29, -0x1.7e79bbbe0c4dfp-32,
};

// log erfc x in u = x - 1
template <class T>
inline constexpr std::array<T, 0> kErfLarge{};
// largest weighted error 2^-26.97
template <>
inline constexpr std::array<f32, 10> kErfLarge<f32>{
    -0x1.d97fc00000000p+0f, -0x1.51c9740000000p+1f, -0x1.afc0b60000000p-1f, -0x1.49d47e0000000p-5f,
    0x1.49b94a0000000p-8f,  0x1.1068be0000000p-7f,  -0x1.7d1e400000000p-7f, 0x1.f655260000000p-8f,
    -0x1.5113260000000p-9f, 0x1.6b2a200000000p-12f,
};
// largest weighted error 2^-59.26
template <>
inline constexpr std::array<f64, 21> kErfLarge<f64>{
    -0x1.d97fbf27aa2a1p+0,  -0x1.51c9b0006c246p+1,  -0x1.afabc11a2863ap-1,  -0x1.5477f09d8baa8p-5,
    0x1.48c9d43a48145p-7,   -0x1.033f6f3d425b0p-9,  0x1.f1b68a581aaa3p-13,  0x1.b88b4fdb068cep-16,
    -0x1.c6d8a6b4dfe50p-16, 0x1.3f78055043c11p-17,  -0x1.0448c00cff10fp-19, 0x1.2edd0cad077c0p-26,
    0x1.a7153aaa7591fp-23,  -0x1.e329f68fd1fc0p-24, 0x1.70c342e472630p-25,  -0x1.b3126340ac73fp-27,
    0x1.8f351249f5200p-29,  -0x1.125a417a8a9eep-31, 0x1.07cc742eb71eap-34,  -0x1.3a63feb09c9f8p-38,
    0x1.5bc95cab7d563p-43,
};

// log 2
template <class T>
inline constexpr std::array<T, 0> kLn2{};
template <>
inline constexpr std::array<f32, 2> kLn2<f32>{0x1.62e4300000000p-1f, -0x1.05c6100000000p-29f};
template <>
inline constexpr std::array<f64, 2> kLn2<f64>{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};

// 1 / log 2
template <class T>
inline constexpr std::array<T, 0> kLog2e{};
template <>
inline constexpr std::array<f32, 2> kLog2e<f32>{0x1.7154760000000p+0f, 0x1.4ae0c00000000p-26f};
template <>
inline constexpr std::array<f64, 2> kLog2e<f64>{0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56};

// 1 / log 10
template <class T>
inline constexpr std::array<T, 0> kLog10e{};
template <>
inline constexpr std::array<f32, 2> kLog10e<f32>{0x1.bcb7b20000000p-2f, -0x1.5b235e0000000p-27f};
template <>
inline constexpr std::array<f64, 2> kLog10e<f64>{0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57};

// log10 2
template <class T>
inline constexpr std::array<T, 0> kLog10Of2{};
template <>
inline constexpr std::array<f32, 2> kLog10Of2<f32>{0x1.3441360000000p-2f, -0x1.ec10c00000000p-27f};
template <>
inline constexpr std::array<f64, 2> kLog10Of2<f64>{0x1.34413509f79ffp-2, -0x1.9dc1da994fd21p-59};

// 2 / log 2
template <class T>
inline constexpr std::array<T, 0> kTwoLog2e{};
template <>
inline constexpr std::array<f32, 2> kTwoLog2e<f32>{0x1.7154760000000p+1f, 0x1.4ae0c00000000p-25f};
template <>
inline constexpr std::array<f64, 2> kTwoLog2e<f64>{0x1.71547652b82fep+1, 0x1.777d0ffda0d24p-55};

// 2 / (3 log 2)
template <class T>
inline constexpr std::array<T, 0> kTwoThirdsLog2e{};
template <>
inline constexpr std::array<f32, 2> kTwoThirdsLog2e<f32>{0x1.ec709e0000000p-1f, -0x1.e2fe020000000p-28f};
template <>
inline constexpr std::array<f64, 2> kTwoThirdsLog2e<f64>{0x1.ec709dc3a03fdp-1, 0x1.d27f05548af0cp-55};

// pi
template <class T>
inline constexpr std::array<T, 0> kPi{};
template <>
inline constexpr std::array<f32, 2> kPi<f32>{0x1.921fb60000000p+1f, -0x1.777a5c0000000p-24f};
template <>
inline constexpr std::array<f64, 2> kPi<f64>{0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53};

// pi / 2
template <class T>
inline constexpr std::array<T, 0> kHalfPi{};
template <>
inline constexpr std::array<f32, 3> kHalfPi<f32>{0x1.921fb60000000p+0f, -0x1.777a5c0000000p-25f,
                                                 -0x1.ee59da0000000p-50f};
template <>
inline constexpr std::array<f64, 3> kHalfPi<f64>{0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54,
                                                 -0x1.f1976b7ed8fbcp-110};

// 2 / pi
template <class T>
inline constexpr std::array<T, 0> kTwoOverPi{};
template <>
inline constexpr std::array<f32, 1> kTwoOverPi<f32>{0x1.45f3060000000p-1f};
template <>
inline constexpr std::array<f64, 1> kTwoOverPi<f64>{0x1.45f306dc9c883p-1};

// Bits of 2/pi after the binary point, most significant first, behind one word of zeros
template <class U>
inline constexpr std::array<U, 0> kTwoOverPiBits{};
template <>
inline constexpr std::array<u32, 8> kTwoOverPiBits<u32>{
    0x00000000u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu,
};
template <>
inline constexpr std::array<u64, 20> kTwoOverPiBits<u64>{
    0x0000000000000000u, 0xa2f9836e4e441529u, 0xfc2757d1f534ddc0u, 0xdb6295993c439041u, 0xfe5163abdebbc561u,
    0xb7246e3a424dd2e0u, 0x06492eea09d1921cu, 0xfe1deb1cb129a73eu, 0xe88235f52ebb4484u, 0xe99c7026b45f7e41u,
    0x3991d639835339f4u, 0x9c845f8bbdf9283bu, 0x1ff897ffde05980fu, 0xef2f118b5a0a6d1fu, 0x6d367ecf27cb09b7u,
    0x4f463f669e5fea2du, 0x7527bac7ebe5f17bu, 0x3d0739f78a5292eau, 0x6bfb5fb11f8d5d08u, 0x56033046fc7b6babu,
};

}  // namespace lockstep::math
