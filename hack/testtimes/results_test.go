package main

import (
	"slices"
	"strings"
	"testing"
)

const events = `{"Action":"start","Package":"a"}
{"Action":"run","Package":"a","Test":"TestFast"}
{"Action":"output","Package":"a","Test":"TestFast","Output":"hidden\n"}
{"Action":"pass","Package":"a","Test":"TestFast","Elapsed":0.1}
{"Action":"pass","Package":"a","Test":"TestSlow","Elapsed":7}
{"Action":"output","Package":"a","Output":"PASS\n"}
{"Action":"output","Package":"a","Output":"ok  \ta\t7.2s\n"}
{"Action":"pass","Package":"a","Elapsed":7.2}
{"Action":"output","Package":"b","Output":"ok  \tb\t(cached)\n"}
{"Action":"pass","Package":"b","Elapsed":0}
{"Action":"output","Package":"c","Test":"TestWrong","Output":"    wrong_test.go:7: this is wrong\n"}
{"Action":"output","Package":"c","Test":"TestWrong","Output":"{\"level\":\"info\"}\n"}
{"Action":"fail","Package":"c","Test":"TestWrong","Elapsed":1}
{"Action":"output","Package":"c","Test":"TestHangs","Output":"this hangs\n"}
{"Action":"output","Package":"c","Output":"panic: test timed out\n"}
{"Action":"output","Package":"c","Output":"FAIL\tc\t90s\n"}
{"Action":"fail","Package":"c","Elapsed":90}
{"ImportPath":"d","Action":"build-output","Output":"d.go:1: no such thing\n"}
{"ImportPath":"d","Action":"build-fail"}
{"Action":"output","Package":"d","Output":"FAIL\td [build failed]\n"}
{"Action":"fail","Package":"d","Elapsed":0,"FailedBuild":"d"}
{"Action":"fail","Package":"f","Test":"TestOne/part","Elapsed":0}
{"Action":"fail","Package":"f","Test":"TestOne","Elapsed":0}
{"Action":"fail","Package":"f","Test":"TestTwo","Elapsed":0}
{"Action":"fail","Package":"f","Elapsed":0}
{"Action":"output","Package":"e","Output":"?   \te\t[no test files]\n"}
{"Action":"skip","Package":"e","Elapsed":0}
go: a message
`

func TestResults(t *testing.T) {
	var r results
	var out strings.Builder
	if err := r.read(strings.NewReader(events), &out); err != nil {
		t.Fatal(err)
	}
	const want = "ok  \ta\t7.2s\nok  \tb\t(cached)\n    wrong_test.go:7: this is wrong\n{\"level\":\"info\"}\npanic: test timed out\nFAIL\tc\t90s\nthis hangs\n" +
		"d.go:1: no such thing\nFAIL\td [build failed]\ngo: a message\n"
	if out.String() != want {
		t.Errorf("printed\n%s, want\n%s", &out, want)
	}
	for what, check := range map[string]struct{ got, want []string }{
		"packages": {r.packageTimes(), []string{"    90.0 s  c\n", "     7.2 s  a\n", "     0.0 s  b cached\n", "     0.0 s  d\n", "     0.0 s  f\n"}},
		"failures": {r.failures, []string{"c TestWrong (1.0 s)\n", "    wrong_test.go:7: this is wrong\n", "f TestOne/part (0.0 s)\n", "f TestOne (0.0 s)\n", "f TestTwo (0.0 s)\n"}},
		"tests":    {r.testTimes(), []string{"     7.0 s  a TestSlow\n"}},
		"failed":   {r.failed(), []string{"c\n", "d\n", "f ^(TestOne|TestTwo)$\n"}},
	} {
		if !slices.Equal(check.got, check.want) {
			t.Errorf("%s: got %q, want %q", what, check.got, check.want)
		}
	}
}
