#include "tests/transport/sim_lab.h"
#include "tests/transport/wire_contract.h"

namespace shoal {

INSTANTIATE_TYPED_TEST_SUITE_P(Sim, WireContract, SimLab);

}  // namespace shoal
