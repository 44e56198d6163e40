#include "lockstep/array.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/refusal.hpp"
#include "lockstep/error.hpp"

namespace {

using namespace lockstep;
using lockstep::test::refusal;

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::vector<int32_t> count_to(size_t n) {
  std::vector<int32_t> values(n);
  std::iota(values.begin(), values.end(), 0);
  return values;
}
template <class E>
std::vector<E> elements_of(const Array& array) {
  const Array packed = array.packed();
  return {packed.as<E>().begin(), packed.as<E>().end()};
}

TEST(Shape, AFifthAxisThrows) {
  Shape shape{1, 2, 3, 4};
  EXPECT_TRUE(has(refusal([&] { shape.push_back(5); }), "at most 4 axes"));
  EXPECT_EQ(shape, (Shape{1, 2, 3, 4}));
  EXPECT_TRUE(has(refusal([] { Shape{1, 2, 3, 4, 5}; }), "at most 4 axes"));
}

TEST(Array, StartsEmptyAndZeroed) {
  const Array none;
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.as<float>().size(), 0u);
  const Array zeros(Storage::i16, {2, 3});
  EXPECT_EQ(zeros.bytes(), 12);
  EXPECT_EQ(elements_of<int16_t>(zeros), std::vector<int16_t>(6, 0));
  EXPECT_EQ(Array(Storage::f64, {}).elements(), 1);
  EXPECT_TRUE(has(refusal([] { Array(Storage::f32, {2, -1}); }), "(2, -1)"));
  EXPECT_TRUE(has(refusal([] { Array(Storage::f64, {int64_t{1} << 40, 1 << 21}); }), "2^63"));
  EXPECT_TRUE(has(refusal([] { Array::of(std::vector<float>{1, 2}, {3}); }), "2 values"));
}

TEST(Array, TypedViewsNameBothTypes) {
  const Array a = Array::of(std::vector<float>{1, 2});
  EXPECT_EQ(refusal([&] { (void)a.as<double>(); }), "an array of f32 [Array]: expected f64");
  Array b = a;
  EXPECT_EQ(refusal([&] { (void)b.mutate<int32_t>(); }), "an array of f32 [Array]: expected i32");
}

TEST(Array, CopiesShareUntilOneIsWritten) {
  Array a = Array::of(count_to(6), {2, 3});
  EXPECT_EQ(a.ownership(), Ownership::owned);
  const std::byte* const where = a.data();
  a.mutate<int32_t>()[0] = 7;
  EXPECT_EQ(a.data(), where) << "one owner writes in place";
  Array b = a;
  EXPECT_EQ(b.data(), a.data());
  EXPECT_EQ(a.ownership(), Ownership::shared);
  b.mutate<int32_t>()[1] = 9;
  EXPECT_EQ(elements_of<int32_t>(a), (std::vector<int32_t>{7, 1, 2, 3, 4, 5}));
  EXPECT_EQ(elements_of<int32_t>(b), (std::vector<int32_t>{7, 9, 2, 3, 4, 5}));
  EXPECT_EQ(a.ownership(), Ownership::owned);
}

TEST(Array, ForeignMemoryIsReadAndNeverWritten) {
  const std::vector<int32_t> values = count_to(6);
  Array view = Array::view(std::span<const int32_t>(values), {2, 3});
  EXPECT_EQ(view.ownership(), Ownership::view);
  EXPECT_EQ(view.as<int32_t>().data(), values.data());
  view.mutate<int32_t>()[0] = 5;
  EXPECT_EQ(values[0], 0);
  EXPECT_EQ(view.ownership(), Ownership::owned);

  auto owner = std::make_shared<std::vector<int32_t>>(values);
  std::weak_ptr<std::vector<int32_t>> alive = owner;
  Array kept = Array::adopt(Storage::i32, {3, 2}, owner->data(), owner, {1, 3});
  owner.reset();
  EXPECT_FALSE(alive.expired());
  EXPECT_EQ(elements_of<int32_t>(kept), (std::vector<int32_t>{0, 3, 1, 4, 2, 5}));
  kept = Array();
  EXPECT_TRUE(alive.expired());
}

TEST(Array, SlicesAndAxes) {
  const Array a = Array::of(count_to(24), {2, 3, 4});
  const Array middle = a.slice(1, 1, 2).slice(-1, 0, 3);
  EXPECT_EQ(middle.shape(), (Sizes{2, 2, 3}));
  EXPECT_FALSE(middle.contiguous());
  EXPECT_EQ(elements_of<int32_t>(middle), (std::vector<int32_t>{4, 5, 6, 8, 9, 10, 16, 17, 18, 20, 21, 22}));
  EXPECT_EQ((middle.at<int32_t>(1, 0, 2)), 18);
  EXPECT_TRUE(has(refusal([&] { (void)middle.as<int32_t>(); }), "contiguous"));
  EXPECT_EQ(a[1].shape(), (Sizes{3, 4}));
  EXPECT_EQ(a[1].as<int32_t>().front(), 12);
  EXPECT_EQ(a.transposed().shape(), (Sizes{4, 3, 2}));
  EXPECT_EQ((a.transposed().at<int32_t>(3, 2, 1)), 23);
  EXPECT_EQ(elements_of<int32_t>(a.transposed().transposed()), count_to(24));
  EXPECT_EQ(a.reshape({6, 4})[5].as<int32_t>()[0], 20);
  EXPECT_TRUE(has(refusal([&] { a.reshape({5, 5}); }), "as many elements"));
  EXPECT_TRUE(has(refusal([&] { middle.reshape({12}); }), "contiguous"));
  EXPECT_TRUE(has(refusal([&] { (void)a.slice(0, 1, 2); }), "indices 1 to 3"));
  EXPECT_TRUE(has(refusal([&] { (void)a.size(3); }), "axis 3"));
  EXPECT_EQ(a.slice(1, 3, 0).copy().elements(), 0);
  EXPECT_EQ(a.device_shape(), (Shape{2, 3, 4}));
  EXPECT_TRUE(
      has(refusal([] { (void)Array(Storage::f32, {1, 1, 1, 1, 1}).device_shape(); }), "at most 4 axes"));
}

TEST(Array, WritingASliceLeavesTheWhole) {
  Array a = Array::of(count_to(4), {2, 2});
  Array row = a[1];
  row.mutate<int32_t>()[0] = 9;
  EXPECT_EQ(elements_of<int32_t>(a), count_to(4));
  EXPECT_EQ(elements_of<int32_t>(row), (std::vector<int32_t>{9, 3}));
}

TEST(Array, ConvertsByValue) {
  const float nan = std::bit_cast<float>(0x7fc12345u);
  const Array f = Array::of(std::vector<float>{1.75f, -2.5f, 300.0f});
  EXPECT_EQ(elements_of<int16_t>(f.to(Storage::i16)), (std::vector<int16_t>{1, -2, 300}));
  EXPECT_EQ(elements_of<double>(f.to(Storage::f64)), (std::vector<double>{1.75, -2.5, 300}));
  EXPECT_EQ(f.to(Storage::f32).data(), f.data());
  EXPECT_EQ(refusal([&] { f.to(Storage::u8); }), "-2.5 at (1,) [Array::to]: expected a value that u8 holds");
  EXPECT_TRUE(has(refusal([&] { Array::of(std::vector<float>{nan}).to(Storage::i32); }), "nan at (0,)"));
  EXPECT_TRUE(has(refusal([&] { Array::of(std::vector<float>{2147483648.0f}).to(Storage::i32); }), "i32"));
  EXPECT_EQ(elements_of<uint64_t>(Array::of(std::vector<double>{9007199254740993.0}).to(Storage::u64))[0],
            9007199254740992u);
  EXPECT_TRUE(has(refusal([] { Array::of(std::vector<uint64_t>{UINT64_MAX}).to(Storage::i64); }),
                  "18446744073709551615"));
  const bool flags[] = {true, false};
  EXPECT_EQ(elements_of<double>(Array::of(std::span<const bool>(flags), {2}).to(Storage::f64)),
            (std::vector<double>{1, 0}));
  EXPECT_EQ(elements_of<bool>(Array::of(std::vector<float>{0, -0.5f}).to(Storage::boolean)),
            (std::vector<bool>{false, true}));
  // 16-bit floats round to nearest even: 2049 lies between 2048 and 2050.
  EXPECT_EQ(elements_of<float>(Array::of(std::vector<double>{2049, 0.25}).to(Storage::f16).to(Storage::f32)),
            (std::vector<float>{2048, 0.25f}));
  // Values that are only moved keep every bit.
  const Array odd = Array::of(std::vector<float>{1, nan, 3, 4}, {2, 2}).transposed().copy();
  EXPECT_EQ(std::bit_cast<uint32_t>(odd.as<float>()[2]), 0x7fc12345u);
}

TEST(Array, FindsWhatIsNotFinite) {
  const Array a = Array::of(std::vector<double>{0, 1, 2, INFINITY, 4, NAN}, {2, 3});
  ASSERT_EQ(first_not_finite(a), 3);
  EXPECT_EQ(index_text(a.shape(), 3), "(1, 0)");
  EXPECT_EQ(first_not_finite(Array::of(count_to(3))), std::nullopt);
  EXPECT_EQ(first_not_finite(Array::of(std::vector<f16>{f16{0x3c00}, f16{0x7c00}})), 1);
}

}  // namespace
