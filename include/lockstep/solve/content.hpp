// The content of a problem: its sets of blocks and terms, which blocks an instance has, and which instances have a block.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/solve.hpp"

namespace lockstep::solve {

struct BlockSetContent {
  BlockSet set;
  std::string name, manifold;
  int numbers = 0, coordinates = 0;  // of a block: on the manifold, and tangent
  int64_t blocks = 0;
};
/// In the order of adding.
std::vector<BlockSetContent> block_sets(const Problem& problem);

struct TermSetContent {
  TermSet terms;
  std::string name;       // of the term type; "loose"
  int64_t instances = 0;  // those that were removed not included
  int64_t enabled = 0;
  int residuals = 0;  // of an instance; an energy has 1
  int data = 0;       // of an instance
  std::string loss;   // of the first instance, as parse_robust_loss() reads it; "expression"
  bool energy = false, host = false, weighted = false;
};
/// In the order of adding.
std::vector<TermSetContent> term_sets(const Problem& problem);

/// Slots and data that a residual does not use are in no instance.
struct InstanceContent {
  struct Slot {
    int slot = 0;  // of the term type; of loose residuals in the order of use
    BlockSet set;
    int64_t block = 0;
  };
  std::vector<Slot> blocks;                  // by ascending slot
  std::vector<std::pair<int, double>> data;  // number of the datum in the term type, by ascending number
  double weight = 1;
  bool enabled = true;
};
/// Throws InputError for an instance that the set does not have, or no longer.
InstanceContent instance_content(const Problem& problem, TermSet terms, int64_t instance);

/// Instances that have a block, disabled ones included, in the order of adding. Reads all instances.
std::vector<std::pair<TermSet, int64_t>> instances_of(const Problem& problem, BlockSet set, int64_t block);

struct BlockContent {
  bool fixed = false;
  std::vector<int> held;             // tangent coordinates
  std::vector<double> lower, upper;  // by number; infinite where there is no bound
};
BlockContent block_content(const Problem& problem, BlockSet set, int64_t block);

}  // namespace lockstep::solve
