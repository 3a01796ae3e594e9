package faults

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/trellis-k8s/trellis/test/kit"
)

// disturbance is a site and the faults for it, one run for each.
type disturbance struct {
	site   site
	faults []fault
}

// remembered are the runs that have found a defect. They are part of the short run.
var remembered = []string{
	// The objects stayed claimed, and the other ManagedResource waited for them.
	"move-back/patch_managedresources.status_b_1/timeout-after",
	// The object was in no inventory until the other ManagedResource tried again.
	"move-back/patch_managedresources.status_a_1/failed-500",
	// The first ManagedResource had the objects again and did not apply them, though the other one had.
	"flap/patch_managedresources.status_b_1/timeout-before",
	// The replacement was not tried again: the error said that the update was invalid, as well.
	"replace/delete_configmaps_fixed_1/failed-500",
	"replace/delete_configmaps_fixed_1/timeout-before",
	// What was applied in between was not recorded, and stayed.
	"revert/patch_managedresources.status_a_1/failed-500",
	// The answer came after the news of the deletion, and the object was held to be there for ever.
	"update/patch_configmaps_one_1/deleted-after",
	"update/patch_secrets_secret_1/unlabelled-after",
}

// short.txt has the other runs of the short run: one for each place where calls are made, in as few scenarios as will do, and by turns with
// each fault.
//
//go:embed testdata/short.txt
var shortRuns string

// shortRun returns the runs of the short run, by scenario and site the names of faults.
func shortRun(t *testing.T) map[string]map[string][]string {
	t.Helper()
	chosen := map[string]map[string][]string{}
	for _, name := range append(strings.Fields(shortRuns), remembered...) {
		parts := strings.Split(name, "/")
		if len(parts) != 3 {
			t.Fatalf("%q is not <scenario>/<call>/<fault>", name)
		}
		if chosen[parts[0]] == nil {
			chosen[parts[0]] = map[string][]string{}
		}
		chosen[parts[0]][parts[1]] = append(chosen[parts[0]][parts[1]], parts[2])
	}
	return chosen
}

// plansFor returns what is injected where in a scenario: every fault at every site, or what is chosen.
func plansFor(visited []site, chosen map[string][]string, full bool) []disturbance {
	var plans []disturbance
	for _, site := range visited {
		if !site.enumerated() {
			continue
		}
		faults := faultsOf(site.call)
		if !full {
			faults = slices.DeleteFunc(faults, func(f fault) bool { return !slices.Contains(chosen[site.String()], f.name) })
		}
		if len(faults) > 0 {
			plans = append(plans, disturbance{site, faults})
		}
	}
	return plans
}

// spread deals plans, in the order of their sites, to as few runs as will do with a number of plans for each: those of a run are far from each other.
func spread(plans []*plan, each int) [][]*plan {
	runs := make([][]*plan, (len(plans)+each-1)/each)
	for i, p := range plans {
		runs[i%len(runs)] = append(runs[i%len(runs)], p)
	}
	return runs
}

// chosenOf returns the runs of a short run: for each place one site, with another fault for each, in as few scenarios as will do.
func chosenOf(visited map[string][]site) []string {
	open := map[string]bool{}
	for _, sites := range visited {
		for _, site := range sites {
			if site.enumerated() {
				open[site.place()] = true
			}
		}
	}
	var chosen []string
	for len(open) > 0 {
		newIn := func(scenario string) int {
			places := map[string]bool{}
			for _, site := range visited[scenario] {
				if site.enumerated() && open[site.place()] {
					places[site.place()] = true
				}
			}
			return len(places)
		}
		best := slices.MaxFunc(slices.Sorted(maps.Keys(visited)), func(a, b string) int { return cmp.Compare(newIn(a), newIn(b)) })
		for _, site := range visited[best] {
			if !site.enumerated() || !open[site.place()] {
				continue
			}
			delete(open, site.place())
			faults := faultsOf(site.call)
			chosen = append(chosen, fmt.Sprintf("%s/%s/%s", best, site, faults[len(chosen)%len(faults)].name))
		}
	}
	slices.Sort(chosen)
	return chosen
}

func writeLines(t *testing.T, path string, lines []string) {
	t.Helper()
	kit.Must(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
}
