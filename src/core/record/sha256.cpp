#include "core/record/sha256.hpp"

#include <algorithm>
#include <bit>
#include <fstream>
#include <vector>

#include "lockstep/error.hpp"

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace lockstep::record {
namespace {

// First 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr std::array<uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

#if defined(__x86_64__) && defined(__GNUC__)
/// Four rounds an instruction pair; the halves of the state are (a, b, e, f) and (c, d, g, h).
__attribute__((target("sha,sse4.1"))) void block_by_instructions(Sha256State& state, const std::byte* bytes) {
  const __m128i order = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  const auto load = [](const void* from) __attribute__((target("sha,sse4.1"))) {
    return _mm_loadu_si128(static_cast<const __m128i*>(from));
  };
  const __m128i badc = _mm_shuffle_epi32(load(state.data()), 0xB1),
                hgfe = _mm_shuffle_epi32(load(state.data() + 4), 0x1B);
  const __m128i abef_before = _mm_alignr_epi8(badc, hgfe, 8), cdgh_before = _mm_blend_epi16(hgfe, badc, 0xF0);
  __m128i abef = abef_before, cdgh = cdgh_before;
  __m128i w[4];
  for (int k = 0; k < 4; ++k) w[k] = _mm_shuffle_epi8(load(bytes + 16 * k), order);
  for (int k = 0; k < 16; ++k) {
    __m128i& now = w[k % 4];
    __m128i added = _mm_add_epi32(now, load(kRound.data() + 4 * k));
    cdgh = _mm_sha256rnds2_epu32(cdgh, abef, added);
    added = _mm_shuffle_epi32(added, 0x0E);
    abef = _mm_sha256rnds2_epu32(abef, cdgh, added);
    const __m128i last = w[(k + 3) % 4];
    const __m128i sum =
        _mm_add_epi32(_mm_sha256msg1_epu32(now, w[(k + 1) % 4]), _mm_alignr_epi8(last, w[(k + 2) % 4], 4));
    now = _mm_sha256msg2_epu32(sum, last);
  }
  const __m128i feba = _mm_shuffle_epi32(_mm_add_epi32(abef, abef_before), 0x1B),
                dchg = _mm_shuffle_epi32(_mm_add_epi32(cdgh, cdgh_before), 0xB1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state.data()), _mm_blend_epi16(feba, dchg, 0xF0));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state.data() + 4), _mm_alignr_epi8(dchg, feba, 8));
}

bool has_sha_instructions() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kSha = 1u << 29, kSse41 = 1u << 19;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & kSha)) return false;
  return __get_cpuid(1, &a, &b, &c, &d) && (c & kSse41);
}
#endif

}  // namespace

Sha256Block fastest_sha256_block() {
#if defined(__x86_64__) && defined(__GNUC__)
  static const bool own = has_sha_instructions();
  if (own) return block_by_instructions;
#endif
  return sha256_block;
}

Sha256::Sha256()
    : state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19} {
}

void sha256_block(Sha256State& state, const std::byte* bytes) {
  std::array<uint32_t, 64> w{};
  for (size_t k = 0; k < 16; ++k)
    for (size_t b = 0; b < 4; ++b) w[k] = w[k] << 8 | static_cast<uint32_t>(bytes[4 * k + b]);
  for (size_t k = 16; k < 64; ++k) {
    const uint32_t a = w[k - 15], b = w[k - 2];
    w[k] = w[k - 16] + w[k - 7] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (size_t k = 0; k < 64; ++k) {
    const uint32_t one =
        h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & f) ^ (~e & g)) + kRound[k] + w[k];
    const uint32_t two =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + one, d = c, c = b, b = a, a = one + two;
  }
  const std::array<uint32_t, 8> after{a, b, c, d, e, f, g, h};
  for (size_t k = 0; k < 8; ++k) state[k] += after[k];
}

void Sha256::update(std::span<const std::byte> bytes) {
  size_t held = length_ % rest_.size();
  length_ += bytes.size();
  while (!bytes.empty()) {
    if (held == 0 && bytes.size() >= rest_.size()) {
      block_(state_, bytes.data());
      bytes = bytes.subspan(rest_.size());
      continue;
    }
    const size_t taken = std::min(rest_.size() - held, bytes.size());
    std::copy_n(bytes.begin(), taken, rest_.begin() + static_cast<ptrdiff_t>(held));
    bytes = bytes.subspan(taken);
    held += taken;
    if (held < rest_.size()) continue;
    block_(state_, rest_.data());
    held = 0;
  }
}

std::string Sha256::finish() {
  const uint64_t bits = 8 * length_;
  const size_t padding = 1 + (2 * rest_.size() - 9 - length_ % rest_.size()) % rest_.size();
  std::vector<std::byte> end(padding + 8);
  end[0] = std::byte{0x80};
  for (size_t k = 0; k < 8; ++k) end[padding + k] = static_cast<std::byte>(bits >> (56 - 8 * k) & 255);
  update(end);
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint32_t word : state_)
    for (int shift = 28; shift >= 0; shift -= 4) text += kDigits[word >> shift & 15];
  return text;
}

std::string sha256(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}
std::string sha256(std::string_view text) {
  return sha256(std::as_bytes(std::span(text.data(), text.size())));
}

std::string sha256_of_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  Sha256 hash;
  std::vector<char> part(1 << 20);
  while (in) {
    in.read(part.data(), static_cast<std::streamsize>(part.size()));
    hash.update(std::string_view(part.data(), static_cast<size_t>(in.gcount())));
  }
  if (!in.eof()) throw InputError("not readable", path.string(), "a file that can be read");
  return hash.finish();
}

}  // namespace lockstep::record
