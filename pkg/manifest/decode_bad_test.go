package manifest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

func TestDecodeReportsWhatItCannotRead(t *testing.T) {
	good, compressed := configMap("good"), compress(t, []byte(configMap("bad")))
	const place = "at index 0 in 'bad.yaml' in secret 'garden/manifests'"

	for name, test := range map[string]struct {
		key, value string
		want       []string
	}{
		"not YAML":              {"bad.yaml", "a: b: c", []string{place, "mapping values are not allowed"}},
		"a tab as indentation":  {"bad.yaml", "a:\n\tb: c\n", []string{place, "line 2"}},
		"invalid UTF-8":         {"bad.yaml", "a: \xff\xfe\n", []string{place, "UTF-8"}},
		"UTF-16":                {"bad.yaml", "a\x00:\x00 \x001\x00", []string{place}},
		"a number":              {"bad.yaml", "42\n", []string{place, "not an object with apiVersion and kind"}},
		"a string":              {"bad.yaml", "hello\n", []string{place, "not an object with apiVersion and kind"}},
		"a list":                {"bad.yaml", "- a\n- b\n", []string{place, "not an object with apiVersion and kind"}},
		"truncated JSON":        {"bad.yaml", `{"apiVersion":"v1","kind":`, []string{place}},
		"a bad separator":       {"bad.yaml", "--- {a: 1\n", []string{place, "not valid YAML"}},
		"an unknown anchor":     {"bad.yaml", "a: *nowhere\n", []string{place, "unknown anchor"}},
		"an alias of itself":    {"bad.yaml", "a: &a [*a]\n", []string{place, "refer to themselves"}},
		"a list item":           {"bad.yaml", `{"kind":"List","items":[7]}`, []string{"in item 0 of the List " + place, "not an object"}},
		"empty .br":             {"bad.br", "", []string{"'bad.br' in secret 'garden/manifests'", "truncated or not brotli"}},
		"truncated .br":         {"bad.br", compressed[:len(compressed)-2], []string{"'bad.br'", "truncated or not brotli"}},
		"plain text as .br":     {"bad.br", good, []string{"'bad.br'", "truncated or not brotli"}},
		"more than brotli":      {"bad.br", compressed + "and more", []string{"'bad.br'", "truncated or not brotli"}},
		"compressed but no .br": {"bad.yaml", compressed, []string{"'bad.yaml'"}},
	} {
		t.Run(name, func(t *testing.T) {
			documents, problems := decodeSecret(secretWith(map[string]string{
				"a.yaml": good, test.key: test.value, "z.yaml": good,
			}), testLimits())

			if got := namesOf(documents); got != "good good" {
				t.Errorf("got the objects %q, want the objects of the other keys", got)
			}
			if len(problems) != 1 {
				t.Fatalf("got the problems %v, want one", textsOf(problems))
			}
			expectContains(t, problems[0].Error(), append(test.want, "could not decode resource")...)
		})
	}
}

func TestDecodeGoesOnAfterABadDocument(t *testing.T) {
	documents, problems := decodeText(configMap("a") + "---\n[1]\n---\n" + configMap("b") + "---\nx: y: z\n---\n" + configMap("c"))
	if got := namesOf(documents); got != "a b c" {
		t.Errorf("got the objects %q, want all valid ones", got)
	}
	texts := textsOf(problems)
	if len(texts) != 2 {
		t.Fatalf("got the problems %v, want two", texts)
	}
	expectContains(t, texts[0], "at index 1 ")
	expectContains(t, texts[1], "at index 3 ")
}

func TestDecodeErrorsHoldNoContent(t *testing.T) {
	for name, text := range map[string]string{
		"unknown anchor":         "password: *hunter2\n",
		"self-containing anchor": "password: &hunter2 [*hunter2]\n",
		"wrong type":             "password: !!int hunter2\n",
		"wrong type, quoted":     "password: !!float 'hunter2'\n",
		"unhashable key":         "password:\n  {pw: hunter2}: x\n",
		"broken mapping":         "password: hunter2\n  x: hunter2: hunter2\n",
		"unclosed quote":         "password: \"hunter2\n",
		"unclosed flow":          "password: {a: hunter2\n",
		"unclosed JSON":          `{"password":"hunter2"`,
		"bad JSON":               `{"password":[hunter2}`,
		"bad escape":             `password: "\hunter2"`,
		"scalar document":        "hunter2\n",
		"list document":          "- hunter2\n",
		"list item":              `{"kind":"List","items":["hunter2"]}`,
		"tab":                    "password:\n\thunter2\n",
		"control character":      "password: hunter2\x01\n",
		"binary":                 "password: !!binary hunter2!\n",
		"merge of a scalar":      "password:\n  <<: hunter2\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := decodeText(text)
			if len(problems) == 0 {
				t.Fatal("no problem is reported, so the test has no purpose")
			}
			for _, text := range textsOf(problems) {
				if strings.Contains(text, "hunter") {
					t.Errorf("the error repeats data of the Secret: %s", text)
				}
			}
		})
	}
}

func TestDecodeLimitsBytes(t *testing.T) {
	content := configMap("a")
	limits := testLimits()
	limits.Bytes = int64(2*len(content)) + 1

	for name, test := range map[string]struct {
		data     map[string]string
		want     string
		problems int
	}{
		"below the limit":       {map[string]string{"a": content, "b": content}, "a a", 0},
		"exactly the limit":     {map[string]string{"a": content, "b": content + "\n"}, "a a", 0},
		"one byte above":        {map[string]string{"a": content, "b": content + "\n\n"}, "a", 1},
		"all keys count":        {map[string]string{"a": content, "b": content, "c": content}, "a a", 1},
		"compressed ones too":   {map[string]string{"a.br": compress(t, []byte(content)), "b": content, "c": content}, "a a", 1},
		"exactly, compressed":   {map[string]string{"a.br": compress(t, []byte(content+content+"\n"))}, "a", 0},
		"one above, compressed": {map[string]string{"a.br": compress(t, []byte(content+content+"\n\n"))}, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			documents, problems := decodeSecret(secretWith(test.data), limits)
			if got := namesOf(documents); got != test.want {
				t.Errorf("got the objects %q, want %q", got, test.want)
			}
			if len(problems) != test.problems {
				t.Errorf("got the problems %v, want %d", textsOf(problems), test.problems)
			}
			for _, text := range textsOf(problems) {
				expectContains(t, text, "exceed", "when decompressed", "controllers.managedResource.maxSecretSize")
			}
		})
	}
}

func TestDecodeDoesNotInflateBombs(t *testing.T) {
	const inflated = 128 << 20
	bomb := compress(t, make([]byte, inflated))
	if len(bomb) > 1024 {
		t.Fatalf("the bomb has %d bytes, want less than 1 KiB", len(bomb))
	}
	secret, limits := secretWith(map[string]string{"bomb.br": bomb}), testLimits()

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	documents, problems := decodeSecret(secret, limits)
	runtime.ReadMemStats(&after)

	if len(documents) != 0 || len(problems) != 1 {
		t.Fatalf("got %d objects and %v, want one problem", len(documents), textsOf(problems))
	}
	// In addition to the limit, doubled by the growth of its buffer, the decoder allocates its own window.
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > inflated/4 {
		t.Errorf("%d MiB were allocated for at most %d MiB of content", allocated>>20, limits.Bytes>>20)
	}
}

func TestDecodeDoesNotExpandAliasBombs(t *testing.T) {
	bomb := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for previous, next := 'a', 'b'; next <= 'j'; previous, next = next, next+1 {
		bomb += string(next) + ": &" + string(next) + " [" + strings.Repeat("*"+string(previous)+", ", 10) + "x]\n"
	}
	documents, problems := decodeText(bomb)
	if len(documents) != 0 || len(problems) != 1 {
		t.Fatalf("got %d objects and %v, want one problem", len(documents), textsOf(problems))
	}
	expectContains(t, problems[0].Error(), "aliases expand")
}

func TestDecodeLimitsDepth(t *testing.T) {
	limits := testLimits()
	limits.Depth = 3
	for name, test := range map[string]struct {
		text string
		ok   bool
	}{
		"at the limit":               {`{"a":{"b":{"c":1}}}`, true},
		"one deeper":                 {`{"a":{"b":{"c":{"d":1}}}}`, false},
		"empty leaves do not count":  {`{"a":{"b":{"c":{}}}}`, true},
		"lists count":                {`{"a":[[[1]]]}`, false},
		"lists at the limit":         {`{"a":[[1]]}`, true},
		"the deepest branch decides": {`{"x":1,"a":[1,{"b":{"c":1}}],"z":1}`, false},
		"far deeper, JSON":           {`{"a":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + "}", false},
		"far deeper, YAML":           {`a: ` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000), false},
		"deeper than parsers bear":   {`{"a":` + strings.Repeat("[", 100_000), false},
		"blocks":                     {strings.Repeat("- ", 5000) + "x", false},
	} {
		t.Run(name, func(t *testing.T) {
			documents, problems := decodeSecret(secretWith(map[string]string{"a": test.text}), limits)
			if ok := len(documents) == 1 && len(problems) == 0; ok != test.ok {
				t.Errorf("got %d objects and %v, want acceptance: %v", len(documents), textsOf(problems), test.ok)
			}
		})
	}
}

func TestDecodeLimitsDocuments(t *testing.T) {
	const item = `{"metadata":{"name":"x"}}`
	limits := testLimits()
	limits.Documents = 3

	for name, test := range map[string]struct {
		data map[string]string
		want int
		ok   bool
	}{
		"at the limit":       {map[string]string{"a": strings.Repeat(item, 3)}, 3, true},
		"one more":           {map[string]string{"a": strings.Repeat(item, 4)}, 3, false},
		"many more":          {map[string]string{"a": strings.Repeat(item, 50)}, 3, false},
		"YAML":               {map[string]string{"a": strings.Repeat(configMap("x")+"---\n", 4)}, 3, false},
		"all keys count":     {map[string]string{"a": item + item, "b": item + item}, 3, false},
		"items count":        {map[string]string{"a": `{"kind":"List","items":[` + item + "," + item + "]}" + item + item}, 2, false},
		"items at the limit": {map[string]string{"a": `{"kind":"List","items":[` + item + "," + item + "]}"}, 2, true},
		"a list beyond":      {map[string]string{"a": strings.Repeat(item, 3) + `{"kind":"List","items":[` + item + "," + item + "]}"}, 3, false},
		"empty ones count":   {map[string]string{"a": strings.Repeat("{}", 3) + item}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			documents, problems := decodeSecret(secretWith(test.data), limits)
			if len(documents) != test.want {
				t.Errorf("got %d objects, want %d", len(documents), test.want)
			}
			switch {
			case test.ok && len(problems) > 0:
				t.Errorf("problems: %v", textsOf(problems))
			case !test.ok && (len(problems) != 1 || !strings.Contains(problems[0].Error(), "more than 3 objects")):
				t.Errorf("got the problems %v, want one about too many objects", textsOf(problems))
			}
		})
	}
}

func TestDefaultLimitsTakeAnyRealSecret(t *testing.T) {
	limits := DefaultLimits()
	if limits.Bytes < 20<<20 || limits.Documents < 10_000 || limits.Depth < 100 {
		t.Errorf("%+v are lower than the content of real Secrets may require", limits)
	}
}

func TestKeysAreLeftOutOnceTooMuchWasWasted(t *testing.T) {
	data := map[string]string{}
	for i := range 5 {
		data[fmt.Sprintf("%d.br", i)] = compress(t, make([]byte, 2000))
	}
	_, problems := decodeSecret(secretWith(data), Limits{Bytes: 1000, Documents: 10, Depth: 10, Values: 1000})
	if len(problems) != 5 || !strings.Contains(problems[4].Error(), "too much of this secret could not be read") {
		t.Errorf("problems: %v", textsOf(problems))
	}
}

func TestItemsOfAListCount(t *testing.T) {
	item := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`
	list := `{"apiVersion":"v1","kind":"List","items":[` + strings.Repeat(item+",", 200) + item + `]}`
	documents, problems := decodeText(list)
	if len(documents) != testLimits().Documents-1 || len(problems) != 1 {
		t.Errorf("%d objects, problems: %v", len(documents), textsOf(problems))
	}
}

func TestWhatFollowsADocument(t *testing.T) {
	_, problems := decodeText("{a: b}\n{c: d}\n")
	if len(problems) != 1 {
		t.Errorf("problems: %v", textsOf(problems))
	}
}
