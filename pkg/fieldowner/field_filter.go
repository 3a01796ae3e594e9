package fieldowner

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// FieldFilter is a summary of the fields that a manager owns. It is small enough to be kept for every object: a Bloom
// filter over the paths of the fields of the upper levels. If it reports that a field is not owned, this is certain.
type FieldFilter [4]uint64

// matchesAll is the filter of fields that could not be read.
var matchesAll = FieldFilter{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}

// filterDepth is the depth of the fields in a filter. Nearly all preserved fields are in the upper levels, and fewer
// paths mean fewer false positives.
const filterDepth = 2

// atomic marks a field in a path that is owned as a whole.
const atomic = "\x00"

// FieldFilterOf returns the filter of the fields of a managedFields entry (FieldsV1).
func FieldFilterOf(fields []byte) FieldFilter {
	var filter FieldFilter
	readable := walk(&scanner{rest: string(fields)}, nil, func(path Pattern, isAtomic bool) {
		if len(path) <= filterDepth {
			filter.add(path, "")
			if isAtomic {
				filter.add(path, atomic)
			}
		}
	})
	if !readable {
		return matchesAll
	}
	return filter
}

// MayHave reports whether fields that match the pattern, or a field that contains them, may be owned.
func (f FieldFilter) MayHave(pattern Pattern) bool {
	for i, part := range pattern[:min(len(pattern), filterDepth)] {
		if part == anyItem || i > 0 && f.has(pattern[:i], atomic) {
			return true
		}
		if !f.has(pattern[:i+1], "") {
			return false
		}
	}
	return true
}

func (f *FieldFilter) add(path Pattern, mark string) {
	word, bit := position(path, mark)
	f[word] |= bit
}

func (f *FieldFilter) has(path Pattern, mark string) bool {
	word, bit := position(path, mark)
	return f[word]&bit != 0
}

// position returns the bit of a path. Its hash is FNV-1a. The parts are not joined, to avoid an allocation for each
// field of each object that changes.
func position(path Pattern, mark string) (word, bit uint64) {
	const offset, prime = 14695981039346656037, 1099511628211
	sum := uint64(offset)
	write := func(text string) {
		for i := range len(text) {
			sum = (sum ^ uint64(text[i])) * prime
		}
	}
	for i, part := range path {
		if i > 0 {
			write("/")
		}
		write(part)
	}
	write(mark)
	return sum >> 62, 1 << (sum >> 32 % 64)
}

// owns reports whether a field is in FieldsV1. It returns false if FieldsV1 cannot be read.
func owns(fields []byte, field Pattern) bool {
	found := false
	walk(&scanner{rest: string(fields)}, nil, func(path Pattern, _ bool) {
		found = found || slices.Equal(path, field)
	})
	return found
}

// walk calls visit for every field in the next JSON object, except those in lists. It reports whether the whole object
// could be read. The path is valid only during the call of visit.
func walk(fields *scanner, path Pattern, visit func(path Pattern, isAtomic bool)) bool {
	if fields.depth++; fields.depth > maxDepth || !fields.take('{') {
		return false
	}
	for first := true; !fields.take('}'); first = false {
		if !first && !fields.take(',') {
			return false
		}
		key, ok := fields.key()
		if !ok {
			return false
		}
		depth, inner := len(path), func(Pattern, bool) {} // "." and items of lists
		if name, isField := strings.CutPrefix(key, "f:"); isField {
			path, inner = append(path, name), visit
			visit(path, fields.empty())
		}
		if !walk(fields, path, inner) {
			return false
		}
		path = path[:depth]
	}
	fields.depth--
	return true
}

// maxDepth is the maximum nesting of fields: much deeper than in any object that an API server accepts, and not deep
// enough to exhaust the stack.
const maxDepth = 1000

// scanner reads the JSON of FieldsV1, which consists only of objects.
type scanner struct {
	rest  string
	depth int
}

func (s *scanner) take(char byte) bool {
	s.rest = strings.TrimLeft(s.rest, " \t\r\n")
	if s.rest == "" || s.rest[0] != char {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

// empty reports whether the next value is an empty object.
func (s *scanner) empty() bool {
	ahead := *s
	return ahead.take('{') && ahead.take('}')
}

// escapesField reports whether a key has escapes and is, or may be, the key of a field. Keys of list items have many
// escapes, but only their first character matters.
func escapesField(key string) bool {
	return strings.Contains(key, `\`) && (key[0] == '\\' || key[0] == 'f')
}

// key reads a key and the following colon. It does not unescape the keys of list items.
func (s *scanner) key() (string, bool) {
	if !s.take('"') {
		return "", false
	}
	for i := 0; i < len(s.rest); i++ {
		switch s.rest[i] {
		case '\\':
			i++
		case '"':
			key := s.rest[:i]
			if !utf8.ValidString(key) {
				return "", false // decoders handle it in different ways
			}
			s.rest = s.rest[i+1:]
			if escapesField(key) {
				var unescaped string // a separate variable, so that key does not escape to the heap
				if json.Unmarshal([]byte(`"`+key+`"`), &unescaped) != nil {
					return "", false
				}
				return unescaped, s.take(':')
			}
			return key, s.take(':')
		}
	}
	return "", false
}
