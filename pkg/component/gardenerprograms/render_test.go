package gardenerprograms

import "testing"

// TestRenderAgain checks that objects of a chart which was rendered before are those of the current values, whatever callers did with them.
func TestRenderAgain(t *testing.T) {
	name := func(replicas int64) (string, int64) {
		objects, err := Scheduler.render(modeRuntime, map[string]any{"replicaCount": replicas, "config": map[string]any{"logFormat": "json"}})
		if err != nil || len(objects) == 0 {
			t.Fatalf("%d objects, %v", len(objects), err)
		}
		for _, object := range objects {
			if object.GetKind() == "Deployment" {
				spec, _ := object.Object["spec"].(map[string]any)
				count, _ := spec["replicas"].(int64)
				if count == 0 {
					other, _ := spec["replicas"].(float64)
					count = int64(other)
				}
				found := object.GetName()
				object.SetName("changed")
				return found, count
			}
		}
		t.Fatal("no Deployment")
		return "", 0
	}
	for _, replicas := range []int64{2, 2, 3, 2} {
		if got, count := name(replicas); got != "gardener-scheduler" || count != replicas {
			t.Errorf("%d replicas: %s with %d", replicas, got, count)
		}
	}
}
