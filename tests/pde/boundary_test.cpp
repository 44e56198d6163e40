#include <gtest/gtest.h>

#include "lockstep/error.hpp"
#include "lockstep/pde.hpp"

namespace lockstep::pde {
namespace {

TEST(Boundary, ParsesAxesAndSides) {
  const Boundary b = Boundary::parse("x=clamp,y-=dirichlet_face:1.5,y+=ghost:-2,z=one_sided2");
  EXPECT_EQ(b.sides[0][0].rule, Rule::clamp);
  EXPECT_EQ(b.sides[0][1].rule, Rule::clamp);
  EXPECT_EQ(b.sides[1][0], (Side{Rule::dirichlet_face, 1.5}));
  EXPECT_EQ(b.sides[1][1], (Side{Rule::ghost, -2}));
  EXPECT_EQ(b.sides[2][1].rule, Rule::one_sided2);
  EXPECT_EQ(Boundary::parse("no_slip").sides[2][0].rule, Rule::no_slip);
  EXPECT_EQ(Boundary::parse("x=clamp").sides[1][0].rule, Rule::periodic);
  EXPECT_EQ(Boundary::parse("clamp,z=periodic").sides[2][1].rule, Rule::periodic);
  EXPECT_EQ(Boundary::parse("ghost_zero").sides[0][0], (Side{Rule::ghost, 0}));
}

TEST(Boundary, TextReadsBack) {
  for (const char* text : {"periodic", "clamp", "x=clamp,y-=dirichlet_face:1.5,y+=ghost:-2,z=one_sided2",
                           "ghost_zero", "x=free_slip,y=node_mirror,z=periodic"}) {
    const Boundary b = Boundary::parse(text);
    EXPECT_EQ(Boundary::parse(b.text()).sides, b.sides) << b.text();
  }
}

TEST(Boundary, RefusesWhatItDoesNotKnow) {
  for (const char* text :
       {"", "wall", "x=wall", "w=clamp", "x*=clamp", "x=clamp:3", "dirichlet_face", "ghost:abc", "ghost:nan",
        "ghost:1e999", "x-=clamp", "x-=periodic,x+=clamp", "x=clamp,", "xx=clamp", "periodic:1"})
    EXPECT_THROW(Boundary::parse(text), InputError) << text;
}

}  // namespace
}  // namespace lockstep::pde
