// Package health tests the health controller with the whole resource-manager, on real control planes. It checks the conditions of a
// ManagedResource for objects that kube-controller-manager, kube-scheduler and simulated nodes bring to life.
package health

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-k8s/trellis/test/controlplane"
)

// moreParallel is the number of tests that run at once, unless the command line sets it. The tests wait most of the time.
const moreParallel = 16

var shared = controlplane.Shared{Options: controlplane.Options{ControllerManager: true, Scheduler: true, Nodes: 3}}

func TestMain(m *testing.M) {
	flag.Parse()
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", fmt.Sprint(moreParallel)); err != nil {
			panic(err)
		}
	}
	code := shared.Run(m)
	os.Exit(max(code, stopUncounted()))
}
