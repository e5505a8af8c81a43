// The contracts of Wire and Transport over the virtual network.
#include "tests/transport/sim_lab.h"
#include "tests/transport/transport_contract.h"
#include "tests/transport/wire_contract.h"

namespace shoal {

INSTANTIATE_TYPED_TEST_SUITE_P(Sim, WireContract, SimLab);
INSTANTIATE_TYPED_TEST_SUITE_P(Sim, TransportContract, SimLab);
INSTANTIATE_TYPED_TEST_SUITE_P(RelayedSim, WireContract, RelayedSimLab);

}  // namespace shoal
