// Problems in NIST's layout: those of the data folder, and models with exact data where it is absent.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "io/test_data.hpp"
#include "solve/datasets/expression.hpp"
#include "solve/datasets/nist.hpp"

namespace lockstep::solve::test {

/// The files of the data folder; none where it is absent.
inline std::vector<std::filesystem::path> nist_files() {
  std::vector<std::filesystem::path> found;
  const std::filesystem::path folder = lockstep::test::data_folder() / "solve" / "nist";
  if (std::filesystem::exists(folder))
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.path().extension() == ".dat") found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

/// A file in NIST's layout with data that a model gives exactly, so that its parameters are the certified
/// ones.
struct Model {
  std::string name, response, model, definition;  // as printed; the model may have line breaks
  std::vector<double> certified, start1, start2, x;
};
inline std::string file_text(const Model& m) {
  std::string text =
      fmt::format("NIST/ITL StRD\r\nDataset Name:  {}            ({}.dat)\r\n\r\n", m.name, m.name);
  text += "File Format:   ASCII\r\n               Starting Values   (lines 41 to 43)\r\n\r\n";
  text += "Data:          1 Response  (y = something)\r\n               1 Predictor (x = something)\r\n\r\n";
  text += fmt::format("Model:         Some Class\r\n               {} Parameters (b1 to b{})\r\n\r\n",
                      m.certified.size(), m.certified.size());
  if (!m.definition.empty()) text += "               " + m.definition + "\r\n";
  text += fmt::format("               {} = {}  +  e\r\n\r\n\r\n", m.response, m.model);
  text +=
      "          Starting values                  Certified Values\r\n\r\n        Start 1     Start 2\r\n";
  for (size_t k = 0; k < m.certified.size(); ++k)
    text += fmt::format("  b{} =   {}   {}   {:.10E}  1.0E-01\r\n", k + 1, m.start1[k], m.start2[k],
                        m.certified[k]);
  text += "\r\nResidual Sum of Squares:                    0.0000000000E+00\r\n";
  text += "Residual Standard Deviation:                1.0000000000E-01\r\n";
  text += fmt::format("Degrees of Freedom:                                {}\r\n",
                      m.x.size() - m.certified.size());
  text += fmt::format("Number of Observations:                            {}\r\n\r\n\r\n", m.x.size());
  text += "Data:   y               x\r\n";
  std::string flat = m.model;
  std::replace(flat.begin(), flat.end(), '\r', ' '), std::replace(flat.begin(), flat.end(), '\n', ' ');
  const Expression expression = Expression::parse(flat);
  for (const double x : m.x) {
    std::map<std::string, double> at{{"x", x}};
    for (size_t k = 0; k < m.certified.size(); ++k) at[fmt::format("b{}", k + 1)] = m.certified[k];
    double y = expression.evaluate(at);
    if (m.response != "y") y = std::exp(y);
    text += fmt::format("      {:.17E}     {:.17E}\r\n", y, x);
  }
  return text;
}
inline std::vector<double> steps(double first, double step, int count) {
  std::vector<double> out;
  for (int k = 0; k < count; ++k) out.push_back(first + step * k);
  return out;
}
/// The forms of model that the datasets have.
inline std::vector<Model> models() {
  const std::vector<double> loads = steps(77.6, 55, 14);
  return {
      {"Saturation", "y", "b1 * (1-(1+b2*x/2)**(-2))", "", {338, 3.9e-4}, {500, 1e-4}, {300, 2e-4}, loads},
      {"HalfPower", "y", "b1 * (1-(1+2*b2*x)**(-.5))", "", {636, 2.1e-4}, {500, 1e-4}, {600, 2e-4}, loads},
      {"Reciprocal", "y", "b1*b2*x*((1+b2*x)**(-1))", "", {437, 3e-4}, {500, 1e-4}, {450, 3e-4}, loads},
      {"Decay",
       "y",
       "exp[-b1*x]/(b2+b3*x)",
       "",
       {0.19, 6.1e-3, 1.05e-2},
       {0.1, 0.01, 0.02},
       {0.15, 0.008, 0.01},
       steps(0.5, 0.25, 22)},
      {"Exponentials",
       "y",
       "b1*exp(-b2*x) + b3*exp(-b4*x) + b5*exp(-b6*x)",
       "",
       {0.0951, 1, 0.8607, 3, 1.5576, 5},
       {1.2, 0.3, 5.6, 5.5, 6.5, 7.6},
       {0.5, 0.7, 3.6, 4.2, 4, 6.3},
       steps(0, 0.05, 24)},
      {"TwoPeaks",
       "y",
       "b1*exp( -b2*x ) + b3*exp( -(x-b4)**2 / b5**2 )\r\n                                   + b6*exp( "
       "-(x-b7)**2 / b8**2 )",
       "",
       {99, 0.011, 101.9, 107, 23.6, 72, 153.3, 19.5},
       {96, 0.009, 103, 106, 18, 72, 151, 18},
       {98, 0.0105, 103, 105, 20, 73, 150, 20},
       steps(1, 1, 250)},
      {"Arctangent",
       "y",
       "b1 - b2*x - arctan[b3/(x-b4)]/pi",
       "pi = 3.141592653589793238462643383279E0",
       {0.2, -6e-6, 1204, -181},
       {0.1, -1e-5, 1000, -100},
       {0.2, -5e-6, 1200, -150},
       steps(-4868, 183, 25)},
      {"Cycles",
       "y",
       "b1 + b2*cos( 2*pi*x/12 ) + b3*sin( 2*pi*x/12 ) \r\n                      + b5*cos( 2*pi*x/b4 ) + "
       "b6*sin( 2*pi*x/b4 ) \r\n                      + b8*cos( 2*pi*x/b7 ) + b9*sin( 2*pi*x/b7 )",
       "",
       {10.5, 3.08, 0.53, 44.3, -1.62, 0.53, 26.9, 0.21, 1.5},
       {11, 3, 0.5, 40, -0.7, -1.3, 25, -0.3, 1.4},
       {10, 3, 0.5, 44, -1.5, 0.5, 26, -0.1, 1.5},
       steps(1, 1, 168)},
      {"Arrhenius",
       "y",
       "b1 * exp[b2/(x+b3)]",
       "",
       {5.61e-3, 6181, 345},
       {2, 400000, 25000},
       {0.02, 4000, 250},
       steps(50, 5, 16)},
      {"Growth",
       "y",
       "b1 / ((1+exp[b2-b3*x])**(1/b4))",
       "",
       {699.6, 5.277, 0.76, 1.279},
       {100, 10, 1, 1},
       {700, 5, 0.75, 1.3},
       steps(1, 1, 15)},
      {"Logarithm",
       "log[y]",
       "b1 - b2*x * exp[-b3*x]",
       "",
       {2.5, 0.02, 0.01},
       {2, 0.01, 0.02},
       {2.5, 0.015, 0.012},
       steps(1, 6, 30)},
  };
}

}  // namespace lockstep::solve::test
