package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	yamlv2 "go.yaml.in/yaml/v2"
	yamlv3 "go.yaml.in/yaml/v3"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// parseYAML parses one YAML document. Errors do not repeat the content, which may be confidential. Aliases may expand
// to the given number of bytes and levels.
// It also returns the keys that occur twice in a mapping. The last one counts.
func parseYAML(content []byte, maxBytes int64, maxDepth int) (value any, duplicates []string, err error) {
	if bytes.ContainsRune(content, '&') && bytes.ContainsRune(content, '*') {
		if err := checkAliases(content, maxBytes, maxDepth); err != nil {
			return nil, nil, err
		}
	}
	if err := checkTail(content); err != nil {
		return nil, nil, err
	}
	asJSON, err := yaml.YAMLToJSONStrict(content)
	if err != nil { // the strict parser also rejects keys that override those of a merge
		if asJSON, err = yaml.YAMLToJSON(content); err != nil {
			return nil, nil, notYAML(err)
		}
		duplicates = duplicateKeys(content)
	}
	value, _, err = parseJSON(asJSON)
	return value, duplicates, err
}

// parseJSON parses one JSON value. It also returns the fields that occur twice in an object. The last one counts.
func parseJSON(content []byte) (value any, duplicates []string, err error) {
	found, err := kjson.UnmarshalStrict(content, &value, kjson.DisallowDuplicateFields)
	if err != nil {
		return nil, nil, notJSON(err)
	}
	for _, duplicate := range found {
		var field kjson.FieldError
		if errors.As(duplicate, &field) {
			duplicates = append(duplicates, field.FieldPath())
		}
	}
	return value, duplicates, nil
}

// checkAliases returns an error for documents whose aliases expand beyond the limits. The limits of the parser count
// nodes, not bytes.
func checkAliases(content []byte, maxBytes int64, maxDepth int) error {
	var root yamlv3.Node
	if err := yamlv3.Unmarshal(content, &root); err != nil {
		return notYAML(err)
	}
	if !fits(&root, maxDepth+2, &maxBytes) {
		return errors.New("its aliases expand beyond the limits, or refer to themselves")
	}
	return nil
}

// fits reports whether a node, with all aliases expanded, stays within depth and budget.
func fits(node *yamlv3.Node, depth int, budget *int64) bool {
	*budget -= int64(len(node.Value)) + 1
	if depth == 0 || *budget < 0 {
		return false
	}
	if node.Kind == yamlv3.AliasNode {
		return fits(node.Alias, depth-1, budget)
	}
	for _, child := range node.Content {
		if !fits(child, depth-1, budget) {
			return false
		}
	}
	return true
}

// checkTail returns an error for content after a document with an explicit end, such as "{…} and more". The parser
// would silently ignore it.
func checkTail(content []byte) error {
	text := bytes.TrimPrefix(bytes.TrimSpace(content), []byte("---"))
	text = bytes.TrimSpace(text)
	if len(text) == 0 || !bytes.ContainsAny(text[:1], "{[\"'&!") {
		return nil
	}
	decoder := yamlv2.NewDecoder(bytes.NewReader(content))
	var document, next any
	if err := decoder.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return notYAML(err)
	}
	switch err := decoder.Decode(&next); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return notYAML(err)
	}
	return errors.New("there is content after the end of the document; separate documents with the line ---")
}

var lineNumber = regexp.MustCompile(`line \d+`)

// yamlPhrases are messages of YAML parsers that do not repeat the content.
var yamlPhrases = []string{
	"mapping values are not allowed in this context",
	"block sequence entries are not allowed in this context",
	"could not find expected ':'",
	"did not find expected",
	"found a tab character",
	"found character that cannot start any token",
	"found unexpected end of stream",
	"found unknown escape character",
	"unknown anchor",
	"document contains excessive aliasing",
	"exceeded max depth",
	"control characters are not allowed",
	"invalid leading UTF-8 octet",
}

// notYAML returns an error with the line and, as far as the message does not repeat the content, the reason why a
// document is not YAML.
func notYAML(err error) error {
	text := err.Error()
	parts := []string{"it is not valid YAML"}
	if line := lineNumber.FindString(text); line != "" {
		parts = append(parts, line)
	}
	for _, phrase := range yamlPhrases {
		if strings.Contains(text, phrase) {
			parts = append(parts, phrase)
			break
		}
	}
	return errors.New(strings.Join(parts, ": "))
}

// notJSON returns an error with the position at which a document is not JSON.
func notJSON(err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("it is not valid JSON: near byte %d", syntax.Offset)
	}
	return errors.New("it is not valid JSON, or ends too early")
}
