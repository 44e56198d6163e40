// Mutated arrays of other programs, and JSON.
#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>

#include "core/temporary_folder.hpp"
#include "io/arrays/frames.hpp"
#include "io/arrays/idx.hpp"
#include "io/arrays/mat5.hpp"
#include "io/arrays/netcdf_arrays.hpp"
#include "io/arrays/safetensors.hpp"
#include "io/fuzz/fuzz_files.hpp"
#include "io/text/file.hpp"
#include "io/text/json_text.hpp"

// Read by AddressSanitizer: libnetcdf keeps what it has read of a file that it then refuses.
extern "C" const char* __lsan_default_suppressions() { return "leak:libnetcdf\nleak:libhdf5\n"; }

namespace {

using namespace lockstep;
using namespace lockstep::io;
using namespace lockstep::test;

std::string_view array_text_of(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
template <class T>
std::string raw(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}
void expect_whole(const NpzArrays& arrays) {
  for (const auto& [name, array] : arrays) {
    ASSERT_EQ(array.raw().size(), size_t(array.bytes()));
    array.to(Storage::f64);
  }
}

TEST(Fuzz, Idx) {
  fuzz({bytes_of(std::string("\0\0\x08\3\0\0\0\2\0\0\0\2\0\0\0\3", 16) + "abcdefghijkl"),
        bytes_of(std::string("\0\0\x08\1\0\0\0\5", 8) + "abcde")},
       [](const Bytes& bytes) {
         const Array array = parse_idx(array_text_of(bytes), "fuzz");
         ASSERT_EQ(array.raw().size(), size_t(array.bytes()));
       });
}

// Damage that a checksum would hide is inside of the compressed array.
TEST(Fuzz, Mat5) {
  std::string head = "MATLAB 5.0";
  head.resize(124, ' ');
  head += std::string("\0\1IM", 4);
  const auto part = [](uint32_t type, std::string data) {
    const std::string size = raw(uint32_t(data.size()));
    data.resize((data.size() + 7) / 8 * 8, '\0');
    return raw(type) + size + data;
  };
  const auto matrix = [&](uint32_t kind, int32_t rows, int32_t cols, uint32_t type, const std::string& data) {
    const std::string body = part(6, raw(kind) + raw(uint32_t(0))) + part(5, raw(rows) + raw(cols)) +
                             part(1, "Omega") + part(type, data);
    return raw(uint32_t(14)) + raw(uint32_t(body.size())) + body;
  };
  const std::string doubles = matrix(6, 2, 3, 9, std::string(48, '\3')), bytes = matrix(9, 3, 1, 2, "abc");
  fuzz({bytes_of(head + doubles), bytes_of(head + bytes + doubles)},
       [](const Bytes& file) { expect_whole(parse_mat5(file, "fuzz")); });
  fuzz({bytes_of(doubles), bytes_of(bytes)}, [&](const Bytes& inner) {
    std::string packed(compressBound(inner.size()), '\0');
    uLongf size = packed.size();
    ASSERT_EQ(compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
                        reinterpret_cast<const Bytef*>(inner.data()), inner.size(), 1),
              Z_OK);
    packed.resize(size);
    expect_whole(parse_mat5(bytes_of(head + raw(uint32_t(15)) + raw(uint32_t(size)) + packed), "fuzz"));
  });
}

TEST(Fuzz, Safetensors) {
  const auto file = [](const std::string& header, const std::string& data) {
    return bytes_of(raw(uint64_t(header.size())) + header + data);
  };
  fuzz(
      {file(
           R"({"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"b":{"dtype":"BOOL","shape":[3],"data_offsets":[24,27]}})",
           std::string(24, '\1') + std::string("\0\1\0", 3)),
       file(
           R"({"__metadata__":{"a":"b"},"x":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]},"y":{"dtype":"I64","shape":[],"data_offsets":[1,9]}})",
           std::string(9, '\2'))},
      [](const Bytes& bytes) { expect_whole(parse_safetensors(bytes, "fuzz")); });
}

// Every value is requested as every type: it is of that type, or an error names its path.
void ask(const JsonValue& value) {
  const auto try_to = [](const auto& work) {
    try {
      work();
    } catch (const InputError&) {}
  };
  try_to([&] { value.number(); });
  try_to([&] { value.integer(-5, int64_t{1} << 40); });
  try_to([&] { value.bits(); });
  try_to([&] { value.text(); });
  try_to([&] { value.boolean(); });
  try_to([&] {
    for (const JsonValue& item : value.items()) ask(item);
  });
  try_to([&] {
    for (const auto& [name, member] : value.members()) ask(member);
  });
}
TEST(Fuzz, Json) {
  fuzz({bytes_of(R"({"a":[1,-2.5e3,null,true,"x\u00e9\\",{"b":{},"c":[[]]}],"d":18446744073709551615})"),
        bytes_of(R"([{"k":1,"l":2},{"k":3,"l":-9223372036854775808}])")},
       [](const Bytes& bytes) { ask(JsonValue::parse(array_text_of(bytes), "fuzz")); });
}

/// omega(time, y, x) of f32 and time(time) of f64 in the classic format of a version: 1, 2 or 5.
Bytes classic_netcdf(int version) {
  Bytes file;
  const auto put = [&](uint64_t value, int bytes) {
    for (int k = bytes - 1; k >= 0; --k) file.push_back(std::byte(value >> (8 * k)));
  };
  const int count = version == 5 ? 8 : 4, offset = version == 1 ? 4 : 8;
  const auto name = [&](std::string text) {
    put(text.size(), count);
    text.resize((text.size() + 3) / 4 * 4, '\0');
    for (const char c : text) file.push_back(std::byte(c));
  };
  const auto attribute = [&](const char* key, const char* text) {
    put(12, 4), put(1, count);
    name(key), put(2, 4), name(text);
  };
  put(0x434446, 3), put(uint64_t(version), 1), put(0, count);  // no records
  put(10, 4), put(3, count);
  name("time"), put(2, count), name("y"), put(3, count), name("x"), put(4, count);
  attribute("title", "a");
  put(11, 4), put(2, count);
  name("omega"), put(3, count), put(0, count), put(1, count), put(2, count);
  attribute("units", "1/s");
  put(5, 4), put(96, count), put(512, offset);
  name("time"), put(1, count), put(0, count), put(0, 4), put(0, count);
  put(6, 4), put(16, count), put(608, offset);
  file.resize(512);
  for (int k = 0; k < 24; ++k) put(0x3fc00000, 4);
  put(0, 8), put(0x3ff0000000000000, 8);
  return file;
}

TEST(Fuzz, NetcdfArrays) {
  if (const std::string reason = netcdf_missing(); !reason.empty()) GTEST_SKIP() << reason;
  TemporaryFolder folder;
  const std::vector<float> values(24, 1.5f);
  write_netcdf(folder / "s.nc",
               {{"omega", {"time", "y", "x"}, Array::of(values, {2, 3, 4}), {{"units", "1/s"}}},
                {"time", {"time"}, Array::of(std::vector<double>{0, 1}), {}}},
               {{"title", "a"}});
  const auto path = folder / "fuzz.nc";
  const auto read = [&](const Bytes& bytes) {
    write_text(path, std::string(array_text_of(bytes)));
    expect_whole(read_netcdf(path, {"omega", "time"}));
    const FrameFile frames(path, "omega");
    if (!frames.shape().empty() && frames.shape()[0] > 0) frames.frame(frames.shape()[0] - 1);
  };
  std::vector<Bytes> files{read_file(folder / "s.nc")};
  for (const int version : {1, 2, 5}) {
    files.push_back(classic_netcdf(version));
    write_text(path, std::string(array_text_of(files.back())));
    const auto arrays = read_netcdf(path, {"omega", "time"});
    EXPECT_EQ(find_array(arrays, "omega", "fuzz").at<double>(1, 2, 3), 1.5) << version;
    EXPECT_EQ(find_array(arrays, "time", "fuzz").at<double>(1), 1.0) << version;
  }
  fuzz(files, read);
}

}  // namespace
