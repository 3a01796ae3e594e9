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

// disturbance is a site and the faults to inject there, one run for each.
type disturbance struct {
	site   site
	faults []fault
}

// remembered lists the runs that found a defect. They are part of the short run.
var remembered = []string{
	// The objects stayed claimed, and the other ManagedResource waited for them.
	"move-back/patch_managedresources.status_b_1/timeout-after",
	// The object was in no inventory until the other ManagedResource was retried.
	"move-back/patch_managedresources.status_a_1/failed-500",
	// The first ManagedResource owned the objects again and did not apply them, although the other one had.
	"flap/patch_managedresources.status_b_1/timeout-before",
	// The replacement was not retried: the error also said that the update was invalid.
	"replace/delete_configmaps_fixed_1/failed-500",
	"replace/delete_configmaps_fixed_1/timeout-before",
	// An object that was applied in between was not recorded, and was retained.
	"revert/patch_managedresources.status_a_1/failed-500",
	// The response arrived after the watch event of the deletion, and the object was considered existing forever.
	"update/patch_configmaps_one_1/deleted-after",
	"update/patch_secrets_secret_1/unlabelled-after",
}

// short.txt lists the other runs of the short run: one for each place that makes calls, in as few scenarios as
// possible, with the faults in turn.
//
//go:embed testdata/short.txt
var shortRuns string

// shortRun returns the runs of the short run: the names of faults by scenario and site.
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

// plansFor returns the faults to inject in a scenario: every fault at every site, or only the chosen ones.
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

// spread distributes plans, in the order of their sites, over as few runs as possible with a maximum number of
// plans for each. The sites of one run are far from each other.
func spread(plans []*plan, each int) [][]*plan {
	runs := make([][]*plan, (len(plans)+each-1)/each)
	for i, p := range plans {
		runs[i%len(runs)] = append(runs[i%len(runs)], p)
	}
	return runs
}

// chosenOf returns the runs of a short run: one site for each place that makes calls, with the faults in turn, in
// as few scenarios as possible.
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
