package flow

import (
	"fmt"
	"testing"
)

// BenchmarkDecideAtRest measures the cost of a pass that finds nothing to do, for an owner of 12 bundles with 20 objects each.
func BenchmarkDecideAtRest(b *testing.B) {
	var plan Plan
	for i := range 12 {
		one := bundle(fmt.Sprint("bundle-", i), "1")
		for j := range 20 {
			one.Objects = append(one.Objects, configMap(fmt.Sprint("object-", i, "-", j), "some value of a usual length, more or less"))
		}
		if i > 0 {
			one.Spec.DependsOn = append(one.Spec.DependsOn, On(named(fmt.Sprint("bundle-", i-1))))
		}
		plan.Bundles = append(plan.Bundles, one)
	}
	live := emittedForBenchmark(b, plan)
	b.ReportAllocs()
	for b.Loop() {
		decision, err := Decide(owner, plan, live, rules())
		if err != nil || len(decision.Steps) > 0 {
			b.Fatal(steps(decision), err)
		}
	}
}

func emittedForBenchmark(b *testing.B, plan Plan) Live {
	b.Helper()
	live := nothingLive()
	for _, one := range plan.Bundles {
		secrets, mr, err := Render(owner, one, testScheme())
		if err != nil {
			b.Fatal(err)
		}
		for _, secret := range secrets {
			live.Secrets[keyOf(secret)] = true
		}
		ready(mr)
		live.ManagedResources[one.Key] = mr
	}
	return live
}
