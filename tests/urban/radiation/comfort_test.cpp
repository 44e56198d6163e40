// UTCI and PET against published values, and the forms for grids against the plain ones.
#include "urban/comfort/comfort.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "lockstep/error.hpp"
#include "urban/stages/run_stage.hpp"

namespace lockstep::urban {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

class Random {
 public:
  double operator()(double low, double high) { return std::uniform_real_distribution<>(low, high)(bits_); }

 private:
  std::mt19937 bits_{7};
};

// air temperature, humidity, Tmrt, wind at 10 m; the golden values are single precision.
TEST(Utci, GivesThePublishedPoints) {
  constexpr std::array<double, 5> points[] = {{20, 50, 22, 1.5, 19.383627}, {35, 40, 55, 1, 40.379917},
                                              {5, 70, 2, 3, -2.228013},     {30, 85, 38, 0.5f, 36.341095},
                                              {25, 60, 30, 8, 20.168085},   {25, 45, 60, 2, 32.829334},
                                              {22, 55, 28, 0.1f, 24.017591}};
  for (const auto& [ta, rh, tmrt, wind, expected] : points)
    EXPECT_NEAR(utci(ta, rh, wind, tmrt), expected, 3e-6) << ta;
}

// Bröde et al. 2012, of which the polynomial is: the reference conditions (50 %, 0.5 m/s at 10 m, Tmrt = Ta)
// are their own equivalent to a degree or so; wind cools cold air, sun and moisture warm.
TEST(Utci, BehavesAsTheIndex) {
  for (double ta = 0; ta <= 28; ta += 4) EXPECT_NEAR(utci(ta, 50, 0.5, ta), ta, 2.0) << ta;
  EXPECT_LT(utci(-10, 60, 10, -10), utci(-10, 60, 2, -10));
  EXPECT_GT(utci(30, 80, 1, 30), utci(30, 20, 1, 30));
  EXPECT_GT(utci(20, 50, 1, 50), utci(20, 50, 1, 20));
}

TEST(Utci, HasNoValueWithoutWindOrAir) {
  EXPECT_TRUE(std::isnan(utci(20, 50, 0, 20)));
  EXPECT_TRUE(std::isnan(utci(20, 50, -1, 20)));
  EXPECT_TRUE(std::isnan(UtciStep(20, 50, 0)(20)));
  EXPECT_TRUE(std::isnan(utci(kNaN, 50, 1, 20)));
  EXPECT_TRUE(std::isnan(utci(20, 50, 1, kNaN)));
  EXPECT_TRUE(std::isnan(utci(20, 50, kNaN, 20)));
  EXPECT_TRUE(utci_is_fitted(20, 50, 0.5, 90));
  EXPECT_FALSE(utci_is_fitted(20, 50, 0.4, 20));
  EXPECT_FALSE(utci_is_fitted(20, 50, 18, 20));
  EXPECT_FALSE(utci_is_fitted(20, 50, 1, 91));
  EXPECT_FALSE(utci_is_fitted(51, 5, 1, 51));
  // Bröde et al. 2012: air of -50 to 50 °C, 30 K less to 70 K more of radiant temperature, 17 m/s, 5 kPa of vapour (at 50 °C
  // 12.35 kPa are saturation).
  for (const double ta : {-50.0, 50.0})
    for (const double excess : {-30.0, 70.0}) EXPECT_TRUE(utci_is_fitted(ta, 40, 17, ta + excess)) << ta;
  EXPECT_FALSE(utci_is_fitted(50, 41, 1, 50));
  EXPECT_FALSE(utci_is_fitted(-50.1, 40, 1, -50.1));
  EXPECT_FALSE(utci_is_fitted(20, 50, 1, -10.1));
  EXPECT_FALSE(utci_is_fitted(20, 50, 1, 90.1));
  EXPECT_FALSE(utci_is_fitted(20, 50, 17.1, 20));
  EXPECT_TRUE(utci_is_fitted(20, 0, 1, 20));
  EXPECT_FALSE(utci_is_fitted(20, -0.1, 1, 20));
  EXPECT_FALSE(utci_is_fitted(45, 90, 1, 45));
}

// A polynomial of degree six through seven values of the whole index is that of the step: both by coefficients
// and by Lagrange's formula.
TEST(Utci, CollapsesToTheSamePolynomial) {
  Random random;
  for (int round = 0; round < 40; ++round) {
    const double ta = random(-30, 45), rh = random(5, 100), wind = random(0.5, 17);
    const UtciStep step(ta, rh, wind);
    for (int k = 0; k < 20; ++k) {
      const double excess = random(-30, 70);
      double lagrange = 0;
      for (int a = 0; a <= 6; ++a) {
        const double xa = -30 + a * 100 / 6.0;
        double weight = utci(ta, rh, wind, ta + xa);
        for (int b = 0; b <= 6; ++b)
          if (b != a) weight *= (excess - (-30 + b * 100 / 6.0)) / ((a - b) * 100 / 6.0);
        lagrange += weight;
      }
      EXPECT_NEAR(step(ta + excess), lagrange, 1e-8 * (1 + std::abs(lagrange)));
      EXPECT_NEAR(step(ta + excess), utci(ta, rh, wind, ta + excess), 1e-9 * (1 + std::abs(lagrange)));
    }
  }
}

TEST(Pet, GivesThePublishedPoints) {
  constexpr std::array<double, 5> points[] = {{20, 50, 22, 1, 17.729},
                                              {35, 40, 55, 1, 44.171},
                                              {5, 70, 2, 2, -0.891},
                                              {30, 85, 38, 0.5, 33.781},
                                              {25, 45, 55, 1.5, 34.291}};
  for (const auto& [ta, rh, tmrt, wind, expected] : points)
    EXPECT_NEAR(pet(ta, rh, tmrt, wind), expected, 0.0005) << ta;  // all digits that are published
}

// Höppe 1999: indoor air of 12 hPa that hardly moves is its own equivalent.
TEST(Pet, IsTheAirTemperatureIndoors) {
  for (const double ta : {15.0, 21.0, 25.0, 32.0}) {
    const double saturation = 6.107 * std::pow(10, 7.5 * ta / (238 + ta));
    EXPECT_NEAR(pet(ta, 100 * 12 / saturation, ta, 0.1), ta, 0.03) << ta;
    EXPECT_NEAR(EvenPet(ta, 100 * 12 / saturation, 0.1)(ta), ta, 0.02) << ta;
  }
}

TEST(Pet, KnowsThePerson) {
  Person woman;
  woman.sex = Sex::female;
  EXPECT_NE(pet(35, 40, 55, 1, woman), pet(35, 40, 55, 1));
  Person child{30, 9, 1.35, 80, 0.5, Sex::male};
  EXPECT_TRUE(std::isfinite(pet(30, 40, 45, 1, child)));
  for (void (*spoil)(Person&) :
       {+[](Person& p) { p.mass_kg = 0; }, +[](Person& p) { p.age_years = -1; },
        +[](Person& p) { p.height_m = 180; }, +[](Person& p) { p.activity_w = kNaN; },
        +[](Person& p) { p.clothing_clo = 0; }}) {
    Person person;
    spoil(person);
    EXPECT_THROW(pet(20, 50, 20, 1, person), InputError);
    EXPECT_THROW(PetStep(20, 50, 1, person), InputError);
  }
}

TEST(Pet, HasNoValueWithoutAir) {
  EXPECT_TRUE(std::isnan(pet(kNaN, 50, 20, 1)));
  EXPECT_TRUE(std::isnan(pet(20, kNaN, 20, 1)));
  EXPECT_TRUE(std::isnan(pet(20, 50, kNaN, 1)));
  EXPECT_TRUE(std::isnan(pet(20, 50, 20, -1)));
  EXPECT_TRUE(std::isfinite(pet(20, 50, 20, 0)));
  const PetStep polar(-45, 70, 2);  // clear nights of the far north
  EXPECT_TRUE(std::isfinite(polar(-54)));
  const PetStep calm(20, 50, -1);
  EXPECT_TRUE(std::isnan(calm(20)));
}

// The balance has a solution everywhere in the range of a city's days, and the table is it.
TEST(Pet, TableIsTheBalance) {
  Random random;
  double off_even = 0, off_published = 0;
  for (int round = 0; round < 12; ++round) {
    const double ta = random(-20, 36), rh = random(10, 100), wind = random(0.1, 3);
    const PetStep step(ta, rh, wind);
    EvenPet even(ta, rh, wind);
    for (int k = 0; k < 120; ++k) {
      const double tmrt = random(ta - 30, std::min(ta + 95, 90.0));
      ASSERT_TRUE(std::isfinite(step(tmrt))) << ta << ' ' << rh << ' ' << wind << ' ' << tmrt;
      off_even = std::max(off_even, std::abs(step(tmrt) - even(tmrt)));
      off_published = std::max(off_published, std::abs(step(tmrt) - pet(ta, rh, tmrt, wind)));
    }
    EXPECT_TRUE(std::isnan(step(ta - 42)));
    EXPECT_TRUE(std::isnan(step(ta + 101)));
  }
  RecordProperty("off_even", std::to_string(off_even));
  RecordProperty("off_published", std::to_string(off_published));
  EXPECT_LE(off_even, 0.02);
  EXPECT_LE(off_published, 0.03);  // half a tooth of the published steps
}

TEST(Wind, FollowsThePowerLaw) {
  EXPECT_DOUBLE_EQ(wind_at(10, 3, 10), 3);
  EXPECT_NEAR(wind_at(kPetWindHeight, 3, 10), 3 * std::pow(0.11, 0.2), 1e-12);
}

TEST(Stress, ClassesHaveThePublishedBounds) {
  const auto bounds = [](ComfortIndex index) {
    std::vector<double> list;
    for (const StressClass& c : stress_classes(index)) list.push_back(c.upper_c);
    EXPECT_TRUE(std::isinf(list.back()));
    list.pop_back();
    return list;
  };
  EXPECT_EQ(bounds(ComfortIndex::utci), (std::vector<double>{-40, -27, -13, 0, 9, 26, 32, 38, 46}));
  EXPECT_EQ(bounds(ComfortIndex::pet), (std::vector<double>{4, 8, 13, 18, 23, 29, 35, 41}));
  const auto name = [](ComfortIndex index, double value) {
    return stress_classes(index)[static_cast<size_t>(stress_class(index, value))].name;
  };
  EXPECT_EQ(name(ComfortIndex::utci, 20), "no thermal stress");
  EXPECT_EQ(name(ComfortIndex::utci, 46.1), "extreme heat stress");
  EXPECT_EQ(name(ComfortIndex::utci, -50), "extreme cold stress");
  EXPECT_EQ(name(ComfortIndex::pet, 20), "comfortable");
  EXPECT_EQ(name(ComfortIndex::pet, 60), "very hot");
  EXPECT_EQ(stress_class(ComfortIndex::pet, kNaN), -1);
}

// On a device: missing pixels stay missing, and the grid's shape does not matter.
TEST(ComfortGrids, AreTheSteps) {
  const Device device = Device::open("cpu,interp");
  const float missing = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> tmrt = {-11.9f, -12, 10, 25.3f, missing, 61, 127.99f, 128, 129, -13};
  const Buffer in = device.upload(std::span<const float>(tmrt), {2, 5}), out = device.allocate<f32>({2, 5});
  const UtciStep utci_step(28, 45, 2);
  utci_grid(device, {}, utci_step, in, out);
  const auto heat = device.download<float>(out);
  const PetStep pet_step(28, 45, 1);
  pet_grid(device, {}, pet_step, in, out);
  const auto felt = device.download<float>(out);
  for (size_t k = 0; k < tmrt.size(); ++k) {
    const double t = static_cast<double>(tmrt[k]);
    EXPECT_EQ(std::isnan(heat[k]), std::isnan(tmrt[k]));
    EXPECT_EQ(std::isnan(felt[k]), !(t >= -12 && t <= 128));
    if (!std::isnan(heat[k])) { EXPECT_NEAR(static_cast<double>(heat[k]), utci_step(t), 2e-4); }
    if (!std::isnan(felt[k])) { EXPECT_NEAR(static_cast<double>(felt[k]), pet_step(t), 1e-4); }
  }
}

// One stage by itself: grids and numbers mix, and nothing is lost in single precision.
TEST(ComfortStages, AreTheFunctions) {
  const auto number = [](double v) {
    return Array::of(std::vector<double>{v}, Sizes(std::vector<int64_t>{}));
  };
  const auto grid = [](std::vector<double> v) { return Array::of(std::move(v), {1, 3}); };
  io::NpzArrays in = {{"ta", number(30)},
                      {"rh", grid({20, 45, 70})},
                      {"va", number(2)},
                      {"v", grid({0.5, 1, 2})},
                      {"tmrt", grid({25, 45, 65})}};
  const io::NpzArrays heat = run_urban_stage("utci", in);
  ASSERT_EQ(heat.size(), 1u);
  const Array& felt = heat.begin()->second;
  ASSERT_EQ(felt.elements(), 3);
  EXPECT_EQ(felt.as<double>()[1], utci(30, 45, 2, 45));
  EXPECT_EQ(felt.as<double>()[2], utci(30, 70, 2, 65));
  EXPECT_EQ(run_urban_stage("pet", in).begin()->second.as<double>()[2], pet(30, 70, 65, 2));
  Person woman;
  woman.sex = Sex::female;
  woman.mass_kg = 60;
  in.emplace_back("sex", number(2));
  in.emplace_back("mass", number(60));
  EXPECT_EQ(run_urban_stage("pet", in).begin()->second.as<double>()[0], pet(30, 20, 25, 0.5, woman));
  in.back().second = number(0);
  EXPECT_THROW(run_urban_stage("pet", in), InputError);
  in.erase(in.begin());
  EXPECT_THROW(run_urban_stage("utci", in), InputError);
}

}  // namespace
}  // namespace lockstep::urban
