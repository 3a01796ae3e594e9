// Package node tests the node controllers on a real control plane. Tests that use all Nodes do not run in parallel.
package node

import (
	"flag"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-k8s/trellis/test/controlplane"
	_ "github.com/trellis-k8s/trellis/test/kit/resourcemanager" // the program that the tests run
)

// shared has no simulated nodes. The tests act as kubelets and decide when Nodes and Pods are Ready.
var shared = controlplane.Shared{Options: controlplane.Options{ControllerManager: true, Scheduler: true}}

func TestMain(m *testing.M) {
	flag.Parse()
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	os.Exit(shared.Run(m))
}
