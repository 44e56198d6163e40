// MAT-files of version 5: the reader on files made here, and on the turbulence fields of the test data.
#include "io/arrays/mat5.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "test_data.hpp"

namespace lockstep::io {
namespace {

class MatFile {
 public:
  explicit MatFile(uint16_t version = 0x0100) : bytes_(128, std::byte{' '}) {
    bytes_[124] = std::byte(version & 0xFF);
    bytes_[125] = std::byte(version >> 8);
    bytes_[126] = std::byte{'I'};
    bytes_[127] = std::byte{'M'};
  }
  template <class T>
  void element(uint32_t type, const std::vector<T>& data) {
    word(type);
    word(uint32_t(data.size() * sizeof(T)));
    const auto* raw = reinterpret_cast<const std::byte*>(data.data());
    bytes_.insert(bytes_.end(), raw, raw + data.size() * sizeof(T));
    while (bytes_.size() % 8) bytes_.push_back({});
  }
  void word(uint32_t value) {
    for (int k = 0; k < 4; ++k) bytes_.push_back(std::byte(value >> 8 * k));
  }
  template <class T>
  void matrix(const std::string& name, const std::vector<int32_t>& shape, uint32_t type,
              const std::vector<T>& data, uint32_t flags = 6) {
    MatFile inner;
    inner.element<uint32_t>(6, {flags, 0});
    inner.element<int32_t>(5, shape);
    inner.element<char>(1, {name.begin(), name.end()});
    inner.element<T>(type, data);
    element<std::byte>(14, {inner.bytes_.begin() + 128, inner.bytes_.end()});
  }
  std::vector<std::byte>& bytes() { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

std::string error_of(const std::vector<std::byte>& bytes) {
  try {
    parse_mat5(bytes, "test.mat");
  } catch (const InputError& e) { return e.what(); }
  return "";
}

TEST(Mat5, ColumnsBecomeRows) {
  MatFile file;
  file.matrix<double>("Omega", {2, 3}, 9, {1, 2, 3, 4, 5, 6});
  file.matrix<uint8_t>("small", {1, 4}, 2, {7, 8, 9, 250});
  file.matrix<double>("z", {1, 1}, 9, {1}, 6 | 0x800);
  const NpzArrays arrays = parse_mat5(file.bytes(), "test.mat");
  ASSERT_EQ(arrays.size(), 2u);
  const Array& omega = find_array(arrays, "Omega", "test.mat");
  EXPECT_EQ(omega.shape(), (Sizes{2, 3}));
  EXPECT_EQ(omega.at<double>(0, 1), 3);
  EXPECT_EQ(omega.at<double>(1, 2), 6);
  EXPECT_EQ(arrays[1].second.at<double>(0, 3), 250);
  ASSERT_EQ(arrays.left_out.size(), 1u);
  EXPECT_EQ(arrays.left_out[0].first, "z");
}

TEST(Mat5, OtherVersionsAndDamageAreNamed) {
  EXPECT_NE(error_of(MatFile(0x0200).bytes()).find("7.3"), std::string::npos);
  EXPECT_NE(error_of(std::vector<std::byte>(200)).find("version 4"), std::string::npos);
  EXPECT_NE(error_of(std::vector<std::byte>(20)).find("too short"), std::string::npos);
  MatFile file;
  file.matrix<double>("Omega", {2, 3}, 9, {1, 2, 3, 4, 5, 6});
  for (size_t cut = 137; cut < file.bytes().size(); cut += 8)
    EXPECT_NE(error_of({file.bytes().begin(), file.bytes().begin() + std::ptrdiff_t(cut)}), "") << cut;
  MatFile large;
  large.matrix<double>("Omega", {1 << 30, 1 << 30}, 9, {1});
  EXPECT_NE(error_of(large.bytes()).find("shape"), std::string::npos);
  MatFile packed;
  packed.element<uint8_t>(15, {0x78, 0x9c, 1, 2, 3, 4, 5, 6});
  EXPECT_NE(error_of(packed.bytes()).find("a damaged compressed array"), std::string::npos);
}

TEST(Mat5, TurbulenceFields) {
  const auto path = test::data_folder() / "flow/turbulence_ic_64.mat";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no turbulence_ic_64.mat in the test data";
  const NpzArrays arrays = read_mat5(path);
  const Array& omega = find_array(arrays, "Omega", "turbulence_ic_64.mat");
  ASSERT_EQ(omega.shape(), (Sizes{64, 64}));
  double sum = 0, square = 0;
  for (const double w : omega.as<double>()) {
    sum += w;
    square += w * w;
  }
  EXPECT_NEAR(sum / 4096, 0, 1e-10);
  EXPECT_GT(square / 4096, 1);
}

}  // namespace
}  // namespace lockstep::io
