// An elimination order by minimum degree for variables that are joined by cliques, and the fronts that it gives.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::solve {

/// Cliques of variables: those of clique k are variables[first[k]] … variables[first[k + 1] - 1], each once.
struct Elements {
  std::vector<int64_t> first{0};
  std::vector<int32_t> variables;
  int32_t count() const { return int32_t(first.size()) - 1; }
  void add(std::span<const int32_t> clique) {
    variables.insert(variables.end(), clique.begin(), clique.end());
    first.push_back(int64_t(variables.size()));
  }
  std::span<const int32_t> operator[](int32_t k) const {
    return std::span(variables).subspan(size_t(first[size_t(k)]),
                                        size_t(first[size_t(k) + 1] - first[size_t(k)]));
  }
};

/// Variables that are eliminated together and those that they leave a clique of.
struct EliminationFront {
  std::vector<int32_t> pivots, rows;
  std::vector<int32_t> elements;  // of the input that are assembled here, ascending
  std::vector<int32_t> children;  // fronts before it whose cliques are assembled here
  int32_t parent = -1;
};

/// Children are before their parents; an element, and what a front leaves, is assembled where the first of its variables is
/// a pivot: nothing is in a front whose pivots it lacks. Variables of a
/// lower group are eliminated before those of a higher one, and no front has pivots of two groups. A function of the
/// arguments alone. Approximate minimum degree on elements (Amestoy, Davis and Duff, SIAM J. Matrix Anal. Appl. 17, 1996);
/// the fronts' structure is exact.
std::vector<EliminationFront> elimination_fronts(std::span<const int32_t> weights,
                                                 std::span<const int32_t> groups, const Elements& elements);

}  // namespace lockstep::solve
