package object

import (
	"bytes"
	"encoding/json"
)

// bodyStart is the start of every body, so that a precondition can be inserted without decoding it.
const bodyStart = `{"metadata":{`

// EncodeBody returns an object as JSON. The body starts with the metadata, and the other fields follow in alphabetical
// order, so that equal objects have equal bodies. The metadata of the object must not be empty. Errors are those of the
// encoder.
func EncodeBody(obj map[string]any) ([]byte, error) {
	rest := make(map[string]any, len(obj))
	for field, value := range obj {
		if field != "metadata" {
			rest[field] = value
		}
	}
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	body.WriteString(`{"metadata":`)
	if err := encoder.Encode(obj["metadata"]); err != nil {
		return nil, err
	}
	body.Truncate(body.Len() - 1) // the newline of the encoder
	if len(rest) > 0 {
		body.WriteByte(',')
		brace := body.Len()
		if err := encoder.Encode(rest); err != nil {
			return nil, err
		}
		encoded := body.Bytes()
		copy(encoded[brace:], encoded[brace+1:])
		body.Truncate(body.Len() - 2)
		return body.Bytes(), nil
	}
	body.WriteByte('}')
	return body.Bytes(), nil
}

// Require returns a body with a precondition: a field of metadata that the API server compares with that of the live
// object, such as the UID.
func Require(body []byte, field, value string) []byte {
	quoted, _ := json.Marshal(value) // a string can always be encoded
	required := make([]byte, 0, len(body)+len(field)+len(quoted)+4)
	required = append(required, bodyStart...)
	required = append(required, '"')
	required = append(required, field...)
	required = append(required, '"', ':')
	required = append(required, quoted...)
	required = append(required, ',')
	return append(required, body[len(bodyStart):]...)
}
