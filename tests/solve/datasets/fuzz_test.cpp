// Mutated reference datasets and formulas: each is read whole or refused by an error of Lockstep's own.
#include <cmath>

#include "io/fuzz/fuzz_files.hpp"
#include "solve/datasets/expression.hpp"
#include "solve/datasets/nist.hpp"

namespace lockstep::solve {
namespace {

using test::Bytes;
using test::bytes_of;
using test::fuzz;

std::string_view text_of(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(Fuzz, Nist) {
  const std::string head =
      "Dataset Name:  Small  (Small.dat)\n\nProcedure: Nonlinear Least Squares Regression\n\n";
  const std::string sums =
      "\nResidual Sum of Squares:  1.25E-01\nResidual Standard Deviation:  1.0E-01\nDegrees of Freedom:  "
      "2\nNumber "
      "of Observations: 4\n\n";
  fuzz({bytes_of(head +
                 "Model: Exponential Class\n  2 Parameters (b1 and b2)\n\n  y = b1*(1-exp[-b2*x])  +  e\n\n "
                 "Starting "
                 "values  Certified Values\n\n Start 1 Start 2 Parameter Deviation\n b1 = 500 250 2.38E+02 "
                 "2.7E+00\n "
                 "b2 = 0.0001 0.0005 5.5E-04 7.26E-06\n" +
                 sums + "Data: y x\n 10.07E0 77.6E0\n 14.73E0 114.9E0\n 17.94E0 141.1E0\n 23.93E0 190.8E0\n"),
        bytes_of(head +
                 "Model: Miscellaneous\n 1 Parameter (b1)\r\n pi = 3.14159\n log[y] = b1\n    + cos( "
                 "2*pi*x1/12 ) * "
                 "x2  + e\n Starting Values\n b1 = 1 2 3 4\n" +
                 sums + "Data: y x1 x2\n1 2 3\n4 5 6\n7 8 9\n1 1 1\n")},
       [](const Bytes& bytes) {
         const NistProblem nist = parse_nist(text_of(bytes), "fuzz");
         ASSERT_EQ(nist.certified.size(), nist.parameters.size());
         ASSERT_EQ(nist.starts[1].size(), nist.parameters.size());
         ASSERT_EQ(size_t(nist.observations()) * nist.columns.size(), nist.data.size());
         build(nist, 1);
       });
}

TEST(Fuzz, Formula) {
  fuzz({bytes_of("b1*(1 - exp[-b2*x]) + -a^2**c"), bytes_of("atan2(y, 2E-3*x)/(1 + .5*log(abs(z)))"),
        bytes_of("((((x))))-[[y]]+max(min(a,b),mod(c,3))")},
       [](const Bytes& bytes) {
         const Expression formula = Expression::parse(text_of(bytes), "fuzz");
         std::map<std::string, double> values;
         for (const std::string& name : formula.names()) values[name] = 0.5;
         formula.evaluate(values);
         autodiff::Tape graph;
         formula.build(graph, [&](const std::string& name) { return graph.variable(name); });
       });
}

TEST(Formula, DeepNestingIsRefusedNotOverrun) {
  for (const char* part : {"(", "[", "-", "exp(", "2^"}) {
    std::string text;
    for (int k = 0; k < 200'000; ++k) text += part;
    EXPECT_THROW(Expression::parse(text + "x", "deep"), InputError) << part;
  }
  // Long but flat formulas are read.
  std::string sum = "x";
  for (int k = 0; k < 2000; ++k) sum += "+x*2";
  EXPECT_EQ(Expression::parse(sum, "long").evaluate({{"x", 1}}), 4001);
}

}  // namespace
}  // namespace lockstep::solve
