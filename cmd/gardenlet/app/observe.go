package app

import (
	"net"
	"strconv"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/eventlimit"
)

// component is the name of the process in Events, user agents and status fields.
const component = "gardenlet"

// newRecorder returns a rate-limited recorder of Events in a cluster.
func newRecorder(to cluster.Cluster) events.EventRecorder {
	return eventlimit.New(to.GetEventRecorder(component), to.GetScheme(), clock.RealClock{})
}

func address(server *gardenletv1alpha1.Server) string {
	return net.JoinHostPort(server.BindAddress, strconv.Itoa(server.Port))
}
