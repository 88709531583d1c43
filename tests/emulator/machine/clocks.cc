#include "clocks.h"

#include <sys/mman.h>

#include <algorithm>
#include <vector>

namespace emu {

namespace {

constexpr int log_fan = 5, fan = 1 << log_fan;

// A node's children, or at level 0 the epochs themselves.
struct Node {
  uint32_t num_refs;
  uint32_t level;
  union {
    uint64_t children[fan];
    uint32_t epochs[fan];
    Node* next_free;
  };
};

// Nodes of one launch; all go when the next begins.
struct Pool {
  static constexpr size_t slab_nodes = 4096;
  std::vector<Node*> slabs;
  size_t num_used = 0;  // of the slabs' nodes, counted through
  Node* free = nullptr;
  size_t num_live = 0, most_live = 0;

  Node* take() {
    most_live = std::max(most_live, ++num_live);
    if (free != nullptr) return std::exchange(free, free->next_free);
    const size_t slab = num_used / slab_nodes;
    if (slab == slabs.size()) slabs.push_back(new_slab());
    return slabs[slab] + num_used++ % slab_nodes;
  }
  void give_back(Node* node) {
    --num_live;
    node->next_free = free;
    free = node;
  }
  static Node* new_slab() {
    return static_cast<Node*>(mmap(nullptr, slab_nodes * sizeof(Node), PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  }
};

Pool pool;
int top_level = 1;

bool is_number(uint64_t tree) { return tree & 1; }
uint32_t number(uint64_t tree) { return uint32_t(tree >> 1); }
uint64_t tree_of(uint32_t epoch) { return uint64_t(epoch) << 1 | 1; }
Node* node(uint64_t tree) { return reinterpret_cast<Node*>(tree); }
uint64_t tree_of(Node* node) { return reinterpret_cast<uint64_t>(node); }
int child_of(Agent agent, int level) { return agent >> (log_fan * level) & (fan - 1); }

}  // namespace

// Steps on trees. What takes a tree by value takes over one reference to it and returns one.
struct Tree {
  using Ref = Clock::Ref;

  // A node that nobody else refers to, with the same contents.
  static Node* own(Ref tree, int level) {
    if (!is_number(tree) && node(tree)->num_refs == 1) return node(tree);
    Node* made = pool.take();
    made->num_refs = 1;
    made->level = uint32_t(level);
    if (is_number(tree)) {
      if (level == 0) {
        std::fill_n(made->epochs, fan, number(tree));
      } else {
        std::fill_n(made->children, fan, tree);
      }
      return made;
    }
    if (level == 0) {
      std::copy_n(node(tree)->epochs, fan, made->epochs);
    } else {
      for (int i = 0; i < fan; ++i) made->children[i] = Clock::shared(node(tree)->children[i]);
    }
    --node(tree)->num_refs;
    return made;
  }

  // Raises one agent (whole = -1), or the 32 or 1024 around it (whole = 0, 1).
  static Ref raise(Ref tree, int level, Agent agent, int whole, uint32_t epoch) {
    if (is_number(tree) && number(tree) >= epoch) return tree;
    if (level == whole) {
      Clock::drop(tree);
      return tree_of(epoch);
    }
    const int i = child_of(agent, level);
    if (level == 0 && !is_number(tree) && node(tree)->epochs[i] >= epoch) return tree;
    Node* made = own(tree, level);
    if (level == 0) {
      made->epochs[i] = epoch;
    } else {
      made->children[i] = raise(made->children[i], level - 1, agent, whole, epoch);
    }
    return tree_of(made);
  }

  // Takes over a, not b.
  static Ref join(Ref a, Ref b, int level) {
    if (a == b || b == Clock::nothing) return a;
    if (a == Clock::nothing) return Clock::shared(b);
    if (is_number(a) && is_number(b)) return std::max(a, b);
    return level == 0 ? join_leaves(a, b) : join_children(a, b, level);
  }

  static Ref join_leaves(Ref a, Ref b) {
    bool a_is_more = true, b_is_more = true;
    for (int i = 0; i < fan; ++i) {
      const uint32_t x = epoch(a, i), y = epoch(b, i);
      a_is_more = a_is_more && x >= y;
      b_is_more = b_is_more && y >= x;
    }
    if (a_is_more) return a;
    if (b_is_more) {
      Clock::drop(a);
      return Clock::shared(b);
    }
    Node* made = own(a, 0);
    for (int i = 0; i < fan; ++i) made->epochs[i] = std::max(made->epochs[i], epoch(b, i));
    return tree_of(made);
  }

  static Ref join_children(Ref a, Ref b, int level) {
    Node* made = nullptr;
    for (int i = 0; i < fan; ++i) {
      const Ref theirs = is_number(b) ? b : node(b)->children[i];
      const Ref ours = made != nullptr ? made->children[i]
                       : is_number(a)  ? a
                                       : node(a)->children[i];
      if (ours == theirs || theirs == Clock::nothing) continue;
      const Ref joined = join(Clock::shared(ours), theirs, level - 1);
      if (joined != ours) {
        if (made == nullptr) made = own(a, level);
        Clock::drop(std::exchange(made->children[i], joined));
      } else {
        Clock::drop(joined);
      }
    }
    return made != nullptr ? tree_of(made) : a;
  }

  static uint32_t epoch(Ref leaf, int i) {
    return is_number(leaf) ? number(leaf) : node(leaf)->epochs[i];
  }

  static void free_node(Node* old) {
    if (old->level > 0) {
      for (int i = 0; i < fan; ++i) Clock::drop(old->children[i]);
    }
    pool.give_back(old);
  }
};

namespace {

// What was joined lately: threads of a block learn the same things one after the other, and share
// the result.
struct Joined {
  uint64_t a = 1, b = 1, both = 1;  // the clock that knows nothing
};
constexpr size_t num_joined = 1024;
Joined joined[num_joined];

Joined& joined_at(uint64_t a, uint64_t b) {
  return joined[((a >> 4) * 0x9e3779b97f4a7c15u ^ (b >> 4) * 0xbf58476d1ce4e5b9u) >> 54];
}

}  // namespace

Clock::Ref Clock::shared(Ref tree) {
  if (!is_number(tree)) ++node(tree)->num_refs;
  return tree;
}

void Clock::drop(Ref tree) {
  if (!is_number(tree) && --node(tree)->num_refs == 0) Tree::free_node(node(tree));
}

uint32_t Clock::of(Agent agent) const {
  Ref at = tree;
  for (int level = top_level; !is_number(at); --level) {
    if (level == 0) return node(at)->epochs[child_of(agent, 0)];
    at = node(at)->children[child_of(agent, level)];
  }
  return number(at);
}

void Clock::raise(Agent agent, uint32_t epoch) {
  tree = Tree::raise(tree, top_level, agent, -1, epoch);
}
void Clock::raise_warp(Agent agent, uint32_t epoch) {
  tree = Tree::raise(tree, top_level, agent, 0, epoch);
}
void Clock::raise_block(Agent agent, uint32_t epoch) {
  tree = Tree::raise(tree, top_level, agent, 1, epoch);
}
void Clock::join(const Clock& other) {
  if (tree == other.tree || other.tree == nothing) return;
  if (is_number(tree) || is_number(other.tree)) {
    tree = Tree::join(tree, other.tree, top_level);
    return;
  }
  Joined& entry = joined_at(tree, other.tree);
  if (entry.a != tree || entry.b != other.tree) {
    const Joined old = entry;
    entry = {shared(tree), shared(other.tree), nothing};
    entry.both = Tree::join(shared(tree), other.tree, top_level);
    for (const Ref part : {old.a, old.b, old.both}) drop(part);
  }
  drop(std::exchange(tree, shared(entry.both)));
}

void Clock::begin(uint64_t num_agents) {
  pool.num_used = pool.num_live = pool.most_live = 0;
  pool.free = nullptr;
  std::fill_n(joined, num_joined, Joined());
  top_level = 1;
  while (uint64_t(1) << (log_fan * (top_level + 1)) < num_agents) ++top_level;
}

size_t Clock::most_bytes() { return pool.most_live * sizeof(Node); }

}  // namespace emu
