package main

import (
	"fmt"
	"strings"
)

// ready counts the sites that report success and whose ManagedResources are all rolled out.
func (f *fleet) ready(owners int) func() (done, all int) {
	return func() (done, all int) {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, mr := range f.mrs {
			if mr.rolledOut {
				done++
			}
		}
		for _, succeeded := range f.sites {
			if succeeded {
				done++
			}
		}
		return done, owners + owners*f.options.Bundles
	}
}

// generations returns the generations of the ManagedResources that contain the changed app.
func (f *fleet) generations(owners int) map[string]int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	generations := map[string]int64{}
	for i := range owners {
		key := fmt.Sprintf("%s/%s-%s", namespaceOf(i), siteName, changedApp)
		generations[key] = f.mrs[key].generation
	}
	return generations
}

// changed counts the ManagedResources with a newer generation that is rolled out.
func (f *fleet) changed(before map[string]int64) func() (done, all int) {
	return func() (done, all int) {
		f.mu.Lock()
		defer f.mu.Unlock()
		for key, generation := range before {
			if mr := f.mrs[key]; mr.generation > generation && mr.rolledOut {
				done++
			}
		}
		return done, len(before)
	}
}

// upgraded counts the ManagedResources of apps that were written by a version of the program and are rolled out.
func (f *fleet) upgraded(version string) func() (done, all int) {
	return func() (done, all int) {
		f.mu.Lock()
		defer f.mu.Unlock()
		for key, mr := range f.mrs {
			if !strings.Contains(key, "/"+siteName+"-app") {
				continue
			}
			all++
			if mr.version == version && mr.rolledOut {
				done++
			}
		}
		return done, all
	}
}

// gone counts the sites and ManagedResources that no longer exist.
func (f *fleet) gone() (done, all int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all = f.options.Owners + f.options.managedResources()
	return all - len(f.sites) - len(f.mrs), all
}

// resetRolling resets the maximum of ManagedResources that are rolling out at the same time.
func (f *fleet) resetRolling() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mostRolling = f.rolling
}

func (f *fleet) rolledAtOnce() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mostRolling
}
