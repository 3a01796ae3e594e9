package v1alpha1

import (
	"slices"
	"strings"
	"testing"
)

func TestTolerations(t *testing.T) {
	const path = "webhooks.systemComponentsConfig.podTolerations[0]."
	long := strings.Repeat("a", 64)
	for toleration, want := range map[string][]string{
		`{operator: Exists}`:                                 nil,
		`{operator: Exists, effect: NoSchedule}`:             nil,
		`{key: a.b/c}`:                                       nil,
		`{key: a, value: b, effect: NoExecute}`:              nil,
		`{key: a, operator: Equal, value: ""}`:               nil,
		`{key: a, effect: PreferNoSchedule}`:                 nil,
		`{key: a, effect: NoExecute, tolerationSeconds: -1}`: nil,
		`{}`:                                   {`operator: Invalid value: "": must be Exists when key is empty, which means all keys and values`},
		`{operator: Equal}`:                    {`operator: Invalid value: "Equal": must be Exists when key is empty, which means all keys and values`},
		`{key: "a b"}`:                         {`key: Invalid value: "a b": name part must consist of alphanumeric characters`},
		`{key: a, value: -}`:                   {`value: Invalid value: "-": a valid label must be an empty string or consist of alphanumeric characters`},
		`{key: a, value: ` + long + `}`:        {`value: Invalid value: "` + long + `": must be no more than 63 bytes`},
		`{key: a, operator: Exists, value: b}`: {`value: Invalid value: "b": must be empty when operator is Exists`},
		`{key: a, operator: Gt, value: "1"}`:   {`operator: Unsupported value: "Gt": supported values: "Equal", "Exists"`},
		`{key: a, operator: exists}`:           {`operator: Unsupported value: "exists": supported values: "Equal", "Exists"`},
		`{key: a, effect: Evict}`:              {`effect: Unsupported value: "Evict": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"`},
		`{key: a, tolerationSeconds: 1}`:       {`effect: Invalid value: "": must be NoExecute when tolerationSeconds is set`},
		`{key: a, effect: NoSchedule, tolerationSeconds: 1}`: {
			`effect: Invalid value: "NoSchedule": must be NoExecute when tolerationSeconds is set`},
	} {
		file := minimal + "webhooks: {systemComponentsConfig: {podTolerations: [" + toleration + "]}}"
		if want == nil {
			mustParse(t, file)
			continue
		}
		got := problemsOf(t, file)
		if !slices.EqualFunc(got, want, func(got, want string) bool { return strings.HasPrefix(got, path+want) }) {
			t.Errorf("%s\ngot:\n%s\nwant:\n%s", toleration, strings.Join(got, "\n"), path+strings.Join(want, "\n"+path))
		}
	}
}
