package confidential

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

const key = "-----BEGIN KEY-----\nc2VjcmV0IG1hdGVyaWFs\nshortline1\n-----END KEY-----\n"

// TestText checks that no form of a value is left in a text, and that the rest of the text is.
func TestText(t *testing.T) {
	password := `pa"ss\word <&>`
	config := "user: admin\npassword: hunter22\nnested: {token: [0123456789], pin: 31337313373}\n"
	inJSON, err := json.Marshal(map[string]string{"p": password})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		form   string
		secret []string
	}{
		"plain":             {key, []string{"c2VjcmV0IG1hdGVyaWFs"}},
		"quoted":            {strconv.Quote(key), []string{"c2VjcmV0IG1hdGVyaWFs", "shortline1"}},
		"a line":            {"c2VjcmV0IG1hdGVyaWFs", []string{"c2VjcmV0IG1hdGVyaWFs"}},
		"a short line":      {"shortline1", []string{"shortline1"}},
		"base64":            {base64.StdEncoding.EncodeToString([]byte(key)), []string{"c2VjcmV0", "YzJWamNtVjBJRzFoZEdWeWFXRnM"}},
		"base64 for URLs":   {base64.RawURLEncoding.EncodeToString([]byte(key)), []string{"YzJWamNtVjBJRzFoZEdWeWFXRnM"}},
		"base64, behind 1":  {base64.StdEncoding.EncodeToString([]byte("x" + key)), []string{base64.StdEncoding.EncodeToString([]byte(key[2:]))[3:40]}},
		"base64, behind 2":  {base64.StdEncoding.EncodeToString([]byte("xy" + key)), []string{base64.StdEncoding.EncodeToString([]byte(key[1:]))[3:40]}},
		"hexadecimal":       {hex.EncodeToString([]byte(password)), []string{hex.EncodeToString([]byte("ss\\word"))}},
		"capital digits":    {strings.ToUpper(hex.EncodeToString([]byte(password))), []string{strings.ToUpper(hex.EncodeToString([]byte("word")))}},
		"in JSON":           {string(inJSON), []string{"word", "ss"}},
		"quoted JSON":       {strconv.Quote(string(inJSON)), []string{"word"}},
		"quoted twice":      {strconv.Quote(strconv.Quote(password)), []string{"word"}},
		"in a URL":          {"https://u:" + url.QueryEscape(password) + "@host", []string{"word"}},
		"bytes":             {fmt.Sprintf("%d", []byte(password)), []string{"119 111 114 100"}},
		"a scalar":          {"invalid value hunter22", []string{"hunter22"}},
		"a number":          {"expected string, got 31337313373", []string{"31337313373"}},
		"an item of a list": {"bad 0123456789", []string{"0123456789", "123456789"}},
	} {
		got := Text("template: "+test.form+" is bad", []string{key, password, config}, 4)
		for _, secret := range test.secret {
			if strings.Contains(got, secret) {
				t.Errorf("%s: %q is left in %q", name, secret, got)
			}
		}
		if !strings.HasPrefix(got, "template: ") || !strings.HasSuffix(got, " is bad") {
			t.Errorf("%s: the rest is missing: %q", name, got)
		}
	}
}

// TestShortValues checks that values that could be part of any text are kept.
func TestShortValues(t *testing.T) {
	if got := Text("a is true, b is pa5s", []string{"true", "pa5s"}, 5); got != "a is true, b is pa5s" {
		t.Error(got)
	}
	if got := Text("b is pa5s", []string{"pa5s"}, 4); got != "b is "+Mark {
		t.Error(got)
	}
}
