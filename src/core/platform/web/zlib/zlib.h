// zlib's names as far as archives of arrays use them.
#pragma once

#include <cstddef>
#include <cstdint>

using Bytef = unsigned char;
using uInt = unsigned int;
using uLong = unsigned long;
using z_off_t = int64_t;

constexpr int Z_OK = 0, Z_STREAM_END = 1, Z_STREAM_ERROR = -2, Z_DATA_ERROR = -3, Z_BUF_ERROR = -5;
constexpr int Z_NO_FLUSH = 0, Z_FINISH = 4, Z_DEFLATED = 8, Z_DEFAULT_STRATEGY = 0, MAX_WBITS = 15;

struct z_stream {
  Bytef* next_in;
  uInt avail_in;
  Bytef* next_out;
  uInt avail_out;
};

uLong crc32(uLong crc, const Bytef* bytes, uInt count);
uLong crc32_combine(uLong crc, uLong next, z_off_t bytes_of_next);

/// Raw deflated data only. A stream is inflated by one call: Z_BUF_ERROR where the input or the room ends before the data.
inline int inflateInit2(z_stream*, int window_bits) { return window_bits < 0 ? Z_OK : Z_STREAM_ERROR; }
int inflate(z_stream* stream, int flush);
inline int inflateEnd(z_stream*) { return Z_OK; }

inline int deflateInit2(z_stream*, int, int, int, int, int) { return Z_STREAM_ERROR; }
inline int deflate(z_stream*, int) { return Z_STREAM_ERROR; }
inline int deflateEnd(z_stream*) { return Z_OK; }
