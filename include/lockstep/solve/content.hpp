// The content of a problem: its sets of blocks and of terms, the blocks of an instance, and the instances of a block.
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
  int numbers = 0;      // of a block
  int coordinates = 0;  // tangent coordinates of a block
  int64_t blocks = 0;
};
/// The sets of blocks in the order of adding.
std::vector<BlockSetContent> block_sets(const Problem& problem);

struct TermSetContent {
  TermSet terms;
  std::string name;       // of the term type; "loose" for individual residuals
  int64_t instances = 0;  // without removed ones
  int64_t enabled = 0;    // number of enabled instances
  int residuals = 0;      // of an instance; 1 for an energy
  int data = 0;           // number of data of an instance
  std::string loss;       // of the first instance, as returned by to_text()
  bool energy = false, host = false, weighted = false;
};
/// The sets of terms in the order of adding.
std::vector<TermSetContent> term_sets(const Problem& problem);

/// An instance. It does not contain slots and data that the residual does not use.
struct InstanceContent {
  struct Slot {
    int slot = 0;  // of the term type; for individual residuals, in the order of use
    BlockSet set;
    int64_t block = 0;
  };
  std::vector<Slot> blocks;                  // in ascending order of slots
  std::vector<std::pair<int, double>> data;  // number of the datum in the term type and its value, ascending
  double weight = 1;
  bool enabled = true;
};
/// Throws InputError for an instance that does not exist or was removed.
InstanceContent instance_content(const Problem& problem, TermSet terms, int64_t instance);

/// Instances that depend on a block, including disabled ones, in the order of adding. The function reads all instances.
std::vector<std::pair<TermSet, int64_t>> instances_of(const Problem& problem, BlockSet set, int64_t block);

struct BlockContent {
  bool fixed = false;
  std::vector<int> held;             // fixed tangent coordinates
  std::vector<double> lower, upper;  // bounds of each number; infinite if there is none
};
BlockContent block_content(const Problem& problem, BlockSet set, int64_t block);

}  // namespace lockstep::solve
