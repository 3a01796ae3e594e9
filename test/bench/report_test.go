package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/test/measure"
)

// complete returns the results of a successful run.
func complete() *results {
	measured := func(name string, seconds float64, requests measure.Tally) phase {
		return phase{Name: name, Objects: 3000, Seconds: seconds, Requests: requests, CPUSeconds: map[string]float64{"etcd": seconds, "bench": 1}}
	}
	limit := limits{Create: measured("limit create", 9, nil), Update: measured("limit update", 8, nil)}
	rest := measured(phaseRest, 130, measure.Tally{"watch secrets": 3})
	rest.Objects = 0
	rest.ManagerCPUSeconds = 0.5
	return &results{
		Version: "v1", Kubernetes: "v1.37.1", CPUs: 2,
		Options: options{ManagedResources: 300, Objects: 10, Workers: 5, Rest: wantedRest},
		Limits:  []limits{limit, limit},
		Creates: []phase{measured(phaseCreate, 10, measure.Tally{"patch configmaps": 4200, measure.FailedRequests: 7, "watch secrets": 9})},
		Updates: []phase{measured(phaseUpdate, 10, measure.Tally{"patch configmaps": 3600}), measured(phaseUpdate, 20, measure.Tally{"patch configmaps": 3000})},
		Restart: &restart{ReadySeconds: 1, IdleSeconds: 2, Requests: measure.Tally{"list secrets": 4, "discover /apis": 2, "watch secrets": 3}},
		Rest:    &rest, RestBytes: 64 << 20, HeapBytes: 30 << 20, PeakBytes: 70 << 20,
		Drift:  &driftResult{phase: phase{Name: phaseDrift}, Changed: 200, PutBack: 200, P50Seconds: ptr.To(0.01), P99Seconds: ptr.To(0.6)},
		Delete: ptr.To(measured(phaseDelete, 10, measure.Tally{"delete configmaps": 4200})),
	}
}

func TestReport(t *testing.T) {
	var got []string
	for _, row := range complete().report(nil) {
		got = append(got, row.Value+" "+row.mark())
	}
	want := []string{
		"0.90 pass", "0.80 FAIL", "1.40 pass", "1.10 pass", "0 pass", "0.50 pass", "0.010 pass", "0.600 FAIL",
		"6: 2 discover, 4 list, 0 get, 0 write pass", "1.40 FAIL", "64.0 pass", "– –",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestReportOfWhatWasNotMeasured(t *testing.T) {
	for _, row := range (&results{Options: options{ManagedResources: 1, Objects: 1}}).report(nil) {
		if row.Value != "–" || row.Pass != nil {
			t.Errorf("got %+v", row)
		}
	}
	// Too short a rest, or another number of objects, is measured but not judged.
	other := complete()
	other.Options.Rest, other.Options.ManagedResources = wantedRest/2, 30
	for _, row := range other.report(nil) {
		if judged := row.Pass != nil; judged && (strings.HasPrefix(row.Figure, "at rest") || strings.HasPrefix(row.Figure, "resident")) {
			t.Errorf("judged: %+v", row)
		}
	}
}

func TestReportOfDriftAndRestartThatFail(t *testing.T) {
	failed := complete()
	failed.Drift = driftOf(phase{}, nil, 200, wantedRest)
	if got := failed.putBack(func(d *driftResult) *float64 { return d.P50Seconds }, wantedP50); got.value != "not within 130" || *got.pass {
		t.Errorf("got %+v", got)
	}
	for _, requests := range []measure.Tally{{"get secrets": 1}, {"patch secrets": 1}} {
		failed.Restart.Requests = requests
		if got := failed.restarted(); *got.pass {
			t.Errorf("%v: got %+v", requests, got)
		}
	}
}

func TestGrowth(t *testing.T) {
	base, large := complete(), complete()
	large.Options.ManagedResources = 3000
	large.RestBytes = base.RestBytes + 27000*2048
	if got := large.growth(base); got.value != "2.00" || !*got.pass {
		t.Errorf("got %+v", got)
	}
	large.RestBytes++
	if got := large.growth(base); *got.pass {
		t.Errorf("got %+v", got)
	}
	if got := base.growth(large); got.pass != nil {
		t.Errorf("negative growth: %+v", got)
	}
}

func TestPublish(t *testing.T) {
	run := complete()
	opts := run.Options
	opts.JSON = filepath.Join(t.TempDir(), "bench.json")
	outputs := map[string]string{}
	for _, opts.Output = range []string{"table", "markdown", "json"} {
		var out strings.Builder
		if err := run.publish(opts, nil, &out); err != nil {
			t.Fatal(err)
		}
		outputs[opts.Output] = out.String()
	}
	file, err := os.ReadFile(opts.JSON)
	if err != nil || string(file) != outputs["json"] {
		t.Errorf("the file and the output differ: %v", err)
	}
	decoded := &results{}
	if err := json.Unmarshal(file, decoded); err != nil || len(decoded.Rows) != 12 || decoded.Creates[0].Requests.Total() != 4200 {
		t.Errorf("got %+v, %v", decoded, err)
	}
	if base, err := readBase(opts.JSON); err != nil || base.RestBytes != run.RestBytes {
		t.Errorf("got %+v, %v", base, err)
	}
	for form, want := range map[string]string{
		"table":    "create: requests per object ≤ 1.4 1.40 pass 1.93 4.1",
		"markdown": "| create: requests per object | ≤ 1.4 | 1.40 | pass | 1.93 | 4.1 |",
	} {
		if got := strings.Join(strings.Fields(outputs[form]), " "); !strings.Contains(got, want) {
			t.Errorf("%s: got\n%s", form, outputs[form])
		}
	}
}

func TestReadBase(t *testing.T) {
	if base, err := readBase(""); base != nil || err != nil {
		t.Errorf("got %v, %v", base, err)
	}
	path := filepath.Join(t.TempDir(), "base.json")
	for _, content := range []string{"", "{}"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readBase(path); err == nil {
			t.Errorf("got no error for %q", content)
		}
	}
	if _, err := readBase(path + "x"); err == nil {
		t.Error("got no error for a missing file")
	}
}

func TestDoubts(t *testing.T) {
	if got := complete().warning(); got != "" {
		t.Errorf("got %q", got)
	}
	for name, test := range map[string]struct {
		disturb func(*results)
		says    string
		marks   string // of create, update and drift
	}{
		"uneven limits": {func(r *results) { r.Limits[1].Update.Seconds = 10 }, "limit update and limit update differ", "pass pass? pass"},
		"turns disagree": {func(r *results) {
			slow := r.Creates[0]
			slow.Seconds *= 2
			r.Creates, r.Limits = append(r.Creates, slow), append(r.Limits, r.Limits[1])
		}, "the shares of create by turns are [0.90 0.45]", "FAIL? FAIL pass"},
		"busy while creating":  {func(r *results) { r.Creates[0].ForeignCPUs = 0.3 }, "0.30 CPUs busy during create", "pass? FAIL pass"},
		"busy at the limit":    {func(r *results) { r.Limits[1].Create.ForeignCPUs = 0.3 }, "during limit create", "pass? FAIL pass"},
		"busy while it drifts": {func(r *results) { r.Drift.ForeignCPUs = 0.3 }, "during drift", "pass FAIL pass?"},
		"busy at rest":         {func(r *results) { r.Rest.ForeignCPUs = 2 }, "", "pass FAIL pass"},
		"busy while deleting":  {func(r *results) { r.Delete.ForeignCPUs = 2 }, "", "pass FAIL pass"},
	} {
		t.Run(name, func(t *testing.T) {
			disturbed := complete()
			test.disturb(disturbed)
			if got := disturbed.warning(); !strings.Contains(got, test.says) || (got == "") != (test.says == "") {
				t.Errorf("got %q", got)
			}
			rows := disturbed.report(nil)
			if got := rows[0].mark() + " " + rows[1].mark() + " " + rows[6].mark(); got != test.marks {
				t.Errorf("got %s, want %s", got, test.marks)
			}
		})
	}
}

func TestThousands(t *testing.T) {
	for number, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 30000: "30,000", 1234567: "1,234,567"} {
		if got := measure.Thousands(number); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
