package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/test/landscape/fleet"
)

// memoryShown is the minimum memory, in KiB, of programs that are logged.
const memoryShown = 5 << 10

// TestShoots creates many Shoots on one node at the same time, and logs when each was ready and the memory of the
// programs.
func TestShoots(t *testing.T) {
	if *shoots == 0 {
		t.Skip("takes minutes and gigabytes: -landscape.shoots 10")
	}
	c, f := onFleet(t)
	c.reduceRequests()
	must(t, f.Up(c.ctx))
	before := c.memory("with one Shoot")

	keys := make([]client.ObjectKey, 0, *shoots)
	for i := range *shoots - 1 {
		keys = append(keys, client.ObjectKey{Namespace: shootOfFleet.Namespace, Name: fmt.Sprintf("many-%02d", i+1)})
	}
	began := time.Now()
	times, err := f.CreateShoots(c.ctx, keys...)
	must(t, err)
	slices.Sort(times)
	t.Logf("%d further Shoots are ready after %s: the first one after %s, half of them after %s, the last one after %s",
		len(keys), time.Since(began).Round(time.Second), times[0], times[len(times)/2], times[len(times)-1])
	after := c.memory(fmt.Sprintf("with %d Shoots", *shoots))
	t.Logf("%d MiB for each further Shoot", (after-before)/len(keys)/1024)
}

// memory logs the memory of the programs, and returns the sum in KiB.
func (c *cluster) memory(when string) int {
	c.t.Helper()
	uses, err := base.Memory()
	must(c.t, err)
	total, lines := 0, []string{}
	for _, use := range uses {
		total += use.KiB
		if use.KiB >= memoryShown {
			lines = append(lines, fmt.Sprintf("%4d x %-28s %6d MiB", use.Processes, use.Program, use.KiB/1024))
		}
	}
	c.t.Logf("Memory %s: %d MiB\n%s", when, total/1024, strings.Join(lines, "\n"))
	return total
}

// reduceRequests reduces the requests of control plane Pods until the test ends.
func (c *cluster) reduceRequests() {
	c.t.Helper()
	for _, object := range fleet.RequestsPolicy() {
		must(c.t, client.IgnoreAlreadyExists(c.Create(c.ctx, object))) // a test that was killed leaves them
		c.t.Cleanup(func() { must(c.t, client.IgnoreNotFound(c.Delete(context.Background(), object))) })
	}
}
