#include "io/arrays/npy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

#include "core/record/stamp.hpp"
#include "core/temporary_folder.hpp"
#include "io/arrays/npz_file.hpp"
#include "io/checks.hpp"
#include "io/test_data.hpp"
#include "io/text/file.hpp"
#include "lockstep/error.hpp"

namespace {

using namespace lockstep;
using namespace lockstep::io;
using namespace lockstep::test;

// A file as NumPy writes it: magic, version 1.0, header padded to 64 bytes.
std::vector<std::byte> numpy_file(std::string header, const std::string& data, int major = 1) {
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string text = "\x93NUMPY";
  text += static_cast<char>(major);
  text += '\0';
  text += static_cast<char>(header.size() & 255);
  text += static_cast<char>(header.size() >> 8);
  if (major > 1) text += std::string(2, '\0');
  return bytes_of(text + header + data);
}

bool same(const Array& a, const Array& b) {
  return a.storage() == b.storage() && a.shape() == b.shape() && std::ranges::equal(a.raw(), b.raw());
}
std::vector<double> numbers_of(const Array& array) {
  const Array numbers = array.to(Storage::f64);
  return {numbers.as<double>().begin(), numbers.as<double>().end()};
}

template <class T>
void round_trip(const std::vector<T>& values) {
  const Array array = Array::of(values);
  for (const bool big : {false, true}) {
    const Array back = parse_npy(encode_npy(array, {false, big}), "memory");
    EXPECT_TRUE(same(back, array)) << npy_name(array.storage()) << (big ? " big-endian" : "");
  }
}

TEST(Npy, EveryTypeAndByteOrderRoundTrips) {
  round_trip<float>({1.5f, -0.0f, 3e38f, std::nanf("7")});
  round_trip<double>({1.5, -1e300, 0});
  round_trip<int8_t>({-128, 127});
  round_trip<uint8_t>({0, 255});
  round_trip<int16_t>({-32768, 1});
  round_trip<uint16_t>({65535});
  round_trip<int32_t>({INT32_MIN, 5});
  round_trip<uint32_t>({UINT32_MAX});
  round_trip<int64_t>({INT64_MIN});
  round_trip<uint64_t>({UINT64_MAX});
  round_trip<f16>({f16{0x3c00}, f16{0x8001}, f16{0x7e01}});
  EXPECT_THROW(encode_npy(Array(Storage::bf16, {1})), InputError);
}

TEST(Npy, ReadsWhatNumpyWrites) {
  const auto file = numpy_file("{'descr': '<i2', 'fortran_order': False, 'shape': (2, 2), }",
                               std::string("\1\0\2\0\3\0\4\0", 8));
  const Array array = parse_npy(file, "memory");
  EXPECT_EQ(array.shape(), (Sizes{2, 2}));
  EXPECT_EQ(numbers_of(array), (std::vector<double>{1, 2, 3, 4}));
  for (const int major : {2, 3}) {
    EXPECT_EQ(numbers_of(parse_npy(numpy_file("{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }",
                                              std::string("\0\1\7", 3), major),
                                   "memory")),
              (std::vector<double>{0, 1, 1}));
  }
  EXPECT_EQ(
      parse_npy(numpy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", std::string(4, '\0')),
                "m")
          .elements(),
      1);
  EXPECT_EQ(parse_npy(numpy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 5), }", ""), "m")
                .elements(),
            0);
}

TEST(Npy, WritesTheHeaderNumpyWrites) {
  const std::string header = encode_npy_header(Storage::f32, {3, 4});
  EXPECT_EQ(header.size() % 64, 0u);
  EXPECT_EQ(header.substr(10, 59), "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }");
  EXPECT_EQ(header.back(), '\n');
}

TEST(Npy, FortranOrderComesAsCOrder) {
  std::vector<int32_t> values(2 * 3 * 4);
  std::iota(values.begin(), values.end(), 0);
  const Array array = Array::of(values, {2, 3, 4});
  const auto encoded = encode_npy(array, {.fortran_order = true});
  const NpyHeader header = parse_npy_header(encoded, "memory");
  EXPECT_TRUE(header.fortran_order);
  int32_t second = 0;  // In Fortran order the first axis is fastest.
  std::memcpy(&second, encoded.data() + header.data_offset + 4, 4);
  EXPECT_EQ(second, 12);
  EXPECT_TRUE(same(parse_npy(encoded, "memory"), array));
}

void expect_refused(const std::vector<std::byte>& file, const std::string& part) {
  try {
    parse_npy(file, "in.npy");
    FAIL() << "accepted; wanted an error with '" << part << "'";
  } catch (const InputError& e) {
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("in.npy"), std::string::npos) << e.what();
  }
}

TEST(Npy, ErrorsNameFileMistakeAndExpectation) {
  expect_refused(bytes_of("hello"), "not an .npy file");
  expect_refused(numpy_file("{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", "12345678"),
                 "unsupported element type '<c8'");
  expect_refused(numpy_file("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "1234"),
                 "elements are records");
  expect_refused(numpy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "1234"),
                 "expected 8 bytes");
  expect_refused(numpy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "123456789"),
                 "9 bytes of array data");
  expect_refused(numpy_file("{'descr': '<f4', 'shape': (1,), }", "1234"), "incomplete header");
  expect_refused(
      numpy_file("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", "1234"),
      "descr");
  expect_refused(numpy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", ""),
                 "not a number");
  expect_refused(
      numpy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", ""),
      "exceeds");
  expect_refused(
      numpy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", ""),
      "too large");
  expect_refused(
      numpy_file("{'descr': '<f8', 'fortran_order': False, 'shape': (2305843009213693952,), }", ""),
      "too large");
  expect_refused(numpy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } x", "1234"),
                 "after the dictionary");
  expect_refused(numpy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", "1234", 9),
                 "version 9");
  auto cut = numpy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", "1234");
  cut.resize(20);
  expect_refused(cut, "cut off");
}

TEST(Npy, MissingFileIsAnInputError) {
  TemporaryFolder folder;
  EXPECT_THROW(read_npy(folder / "none.npy"), InputError);
  EXPECT_THROW(read_npy(folder.path()), InputError);
}

NpzArrays sample_arrays() {
  std::vector<float> noise(5000);
  for (size_t k = 0; k < noise.size(); ++k) noise[k] = std::sin(static_cast<float>(k));
  const std::vector<int64_t> numbers = {1, -2, 3};
  return {{"noise", Array::of(noise, {50, 100})}, {"numbers", Array::of(numbers)}, {"empty", Array()}};
}

TEST(Npz, RoundTripsStoredAndDeflated) {
  TemporaryFolder folder;
  const NpzArrays arrays = sample_arrays();
  for (const auto compression : {NpzCompression::stored, NpzCompression::deflated}) {
    write_npz(folder / "a.npz", arrays, compression);
    const NpzArrays back = read_npz(folder / "a.npz");
    ASSERT_EQ(back.size(), arrays.size());
    for (size_t k = 0; k < back.size(); ++k) {
      EXPECT_EQ(back[k].first, arrays[k].first);
      EXPECT_TRUE(same(back[k].second, arrays[k].second));
    }
  }
  EXPECT_EQ(find_array(arrays, "numbers", "a.npz").elements(), 3);
  try {
    find_array(arrays, "sigma0", "a.npz");
    FAIL();
  } catch (const InputError& e) {
    EXPECT_STREQ(
        e.what(),
        "array 'sigma0' is missing [a.npz]: expected it among those present (noise, numbers, empty)");
  }
}

// NumPy takes a file for an archive by its first four bytes: a member's header, or the end of one without any.
TEST(Npz, AnArchiveWithoutArraysIsOneForNumpyToo) {
  TemporaryFolder folder;
  write_npz(folder / "none.npz", {});
  const std::vector<std::byte> bytes = read_file(folder / "none.npz");
  ASSERT_GT(bytes.size(), 22u);
  EXPECT_EQ(std::memcmp(bytes.data(), "PK\5\6", 4), 0);
  EXPECT_EQ(bytes.size(), 22 + size_t(bytes[20]) + 256 * size_t(bytes[21]));
  EXPECT_TRUE(read_npz(folder / "none.npz").empty());
}

TEST(Npz, LabelsAreInTheComment) {
  TemporaryFolder folder;
  write_npz(folder / "a.npz", sample_arrays(), NpzCompression::stored,
            {.title = "samples", .units = {{"x", "m"}}});
  const std::vector<std::byte> bytes = read_file(folder / "a.npz");
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::string comment =
      R"({"title":"samples","units":{"x":"m"},"program":")" + record::stamp().program + R"("})";
  EXPECT_TRUE(text.ends_with(std::string(1, char(comment.size())) + std::string(1, '\0') + comment))
      << comment;
}

TEST(Npz, DamageIsRefused) {
  TemporaryFolder folder;
  write_npz(folder / "a.npz", sample_arrays(), NpzCompression::deflated);
  const std::vector<std::byte> whole = read_file(folder / "a.npz");
  for (size_t length = 0; length < whole.size(); length += 97) {
    EXPECT_THROW(parse_npz(std::span(whole).first(length), "cut"), InputError) << length;
  }
  // A flipped bit in the compressed data meets the checksum or the inflater.
  for (size_t at = 100; at < 4000; at += 131) {
    auto flipped = whole;
    flipped[at] ^= std::byte{16};
    EXPECT_THROW(parse_npz(flipped, "flipped"), InputError) << at;
  }
}

TEST(Npz, AnImpossibleSizeIsRefusedBeforeMemoryIsTaken) {
  TemporaryFolder folder;
  write_npz(folder / "a.npz", {{"x", Array()}}, NpzCompression::deflated);
  std::vector<std::byte> bytes = read_file(folder / "a.npz");
  // The directory's ZIP64 field holds the unpacked size behind the member's name "x.npy".
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const size_t at = text.rfind("x.npy") + 5 + 4;
  const uint64_t claim = uint64_t{1} << 50;
  std::memcpy(bytes.data() + at, &claim, 8);
  try {
    parse_npz(bytes, "bomb.npz");
    FAIL();
  } catch (const InputError& e) {
    EXPECT_NE(std::string(e.what()).find("impossible size"), std::string::npos) << e.what();
  }
}

TEST(Npz, ReadsArraysThatNumpyWrote) {
  const auto data = data_folder() / "urban" / "athens400";
  if (!std::filesystem::exists(data)) GTEST_SKIP() << "no " << data;
  const Array dsm = read_npy(data / "input_dsm.npy");
  EXPECT_EQ(dsm.shape(), (Sizes{400, 400}));
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(data)) {
    if (entry.path().extension() == ".npz") {
      EXPECT_FALSE(read_npz(entry.path()).empty()) << entry.path();
    } else {
      EXPECT_NO_THROW(read_npy(entry.path())) << entry.path();
    }
    ++files;
  }
  EXPECT_GT(files, 20);
  const NpzArrays with_texts = read_npz(data / "pet_single_point.npz");
  ASSERT_EQ(with_texts.left_out.size(), 1u);
  try {
    find_array(with_texts, "descriptions", "pet");
    FAIL();
  } catch (const InputError& e) {
    EXPECT_NE(std::string(e.what()).find("unsupported element type '<U14'"), std::string::npos) << e.what();
  }
}

// The header decides before the content is read: a damaged content is no error of an array that is refused by its shape.
// Parts of a stored array are those of the whole one, and their checksums in order are the archive's.
TEST(Npz, PartsOfStoredArraysAreReadAndVerified) {
  TemporaryFolder folder;
  std::vector<double> values(2 * 5 * 3 * 4);
  std::iota(values.begin(), values.end(), 0.5);
  const Array whole = Array::of(values, {2, 5, 3, 4});
  const std::vector<int64_t> order{4, 0, 1, 1};
  write_npz(folder / "stored.npz", {{"a", whole}, {"b", Array::of(std::vector<float>{1, 2})}});
  write_npz(folder / "packed.npz", {{"a", whole}}, NpzCompression::deflated);
  EXPECT_FALSE(NpzFile(folder / "packed.npz").read_slices("a", 1, order));
  const NpzFile file(folder / "stored.npz");
  EXPECT_EQ(file.checksum("a"), NpzFile(folder / "packed.npz").checksum("a"));
  for (const size_t axis : {size_t(0), size_t(1), size_t(3)}) {
    const std::vector<int64_t> positions = axis == 0   ? std::vector<int64_t>{1}
                                           : axis == 1 ? order
                                                       : std::vector<int64_t>{3, 2};
    const auto part = file.read_slices("a", axis, positions);
    ASSERT_TRUE(part);
    for (size_t k = 0; k < positions.size(); ++k)
      EXPECT_TRUE(same(part->slice(int(axis), int64_t(k), 1).packed(),
                       whole.slice(int(axis), positions[k], 1).packed()))
          << "axis " << axis << ", position " << positions[k];
  }
  // Two rows, each of planes 0 to 1 and 2 to 4.
  std::vector<PartChecksum> parts;
  for (size_t row = 0; row < 2; ++row)
    for (const auto& [first, count] : {std::pair(0, 2), {2, 3}})
      parts.push_back(checksum_of(whole.raw().subspan((row * 5 + size_t(first)) * 96, size_t(count) * 96)));
  EXPECT_NO_THROW(file.verify("a", parts));
  std::swap(parts[1], parts[2]);
  EXPECT_THROW(file.verify("a", parts), InputError);
  std::vector<std::byte> bytes = read_file(folder / "stored.npz");
  bytes[300] ^= std::byte(1);
  const NpzFile damaged(bytes, "t");
  EXPECT_TRUE(damaged.read_slices("a", 1, order)) << "which verifies nothing";
  const auto take_all = [](const NpzFile& f) {
    f.verify("a", std::vector{checksum_of(f.read_slices("a", 0, std::vector<int64_t>{0, 1})->raw())});
  };
  EXPECT_THROW(take_all(damaged), InputError);
  bytes[300] ^= std::byte(1);
  EXPECT_NO_THROW(take_all(NpzFile(bytes, "t")));
}

TEST(Npz, ArraysAreRefusedByTheirHeaders) {
  TemporaryFolder folder;
  const std::vector<float> values(60, 1.5f);
  for (const NpzCompression compression : {NpzCompression::stored, NpzCompression::deflated}) {
    write_npz(folder / "a.npz", {{"a", Array::of(values, {3, 20})}, {"b", Array::of(values)}}, compression);
    const NpzFile file(folder / "a.npz");
    EXPECT_EQ(file.names(), (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(file.header("a").shape, (Sizes{3, 20}));
    for (const ArrayLimits& good : {ArrayLimits{}, {Storage::f32, 2}, {{}, -1, {3, -1}}, {{}, -1, {}, 60}})
      EXPECT_EQ(file.read("a", good).elements(), 60);
    for (const ArrayLimits& bad :
         {ArrayLimits{Storage::f64}, {{}, 1}, {{}, -1, {3, 21}}, {{}, -1, {60}}, {{}, -1, {}, 59}}) {
      try {
        file.read("a", bad);
        ADD_FAILURE() << bad.broken_by(Storage::f32, {3, 20});
      } catch (const InputError& e) {
        EXPECT_EQ(e.problem(), "array 'a' of f32 (3, 20)");
        EXPECT_EQ(e.where(), (folder / "a.npz").string());
        EXPECT_EQ(e.expected(), bad.broken_by(Storage::f32, {3, 20}));
      }
    }
    EXPECT_THROW(file.read("c"), InputError);
    std::vector<std::byte> bytes = read_file(folder / "a.npz");
    bytes[60] ^= std::byte{1};  // in the content of a, which begins at 55
    const NpzFile damaged(bytes, "t");
    EXPECT_THROW(damaged.read("a"), InputError);
    EXPECT_EQ(damaged.header("b").shape, (Sizes{60}));
  }
}

}  // namespace
