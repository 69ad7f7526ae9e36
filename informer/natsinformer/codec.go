package natsinformer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/operatorkit/operatorkit/internal/faults"
)

// Codec converts entities to the bytes of entries and back. It must be safe for concurrent use.
type Codec[T Entity] interface {
	// Encode returns the bytes of an entity, which it must not keep or change.
	Encode(entity T) ([]byte, error)
	// Decode returns a new entity that shares no memory with data.
	Decode(data []byte) (T, error)
}

// JSON is the default Codec of a Bucket: JSON by encoding/json. Fields of an entry that T lacks,
// such as fields of a later version, stay in the entry when an entity is read and written, if its
// Meta is the one that was read. So do fields that a type with a MarshalJSON method reads but does
// not write.
type JSON[T Entity] struct{}

// Encode implements Codec.
func (JSON[T]) Encode(entity T) ([]byte, error) {
	data, err := json.Marshal(entity)
	original := entity.EntityMeta().original
	if err != nil || original == nil {
		return data, err
	}
	var read T
	if err := json.Unmarshal(original, &read); err != nil {
		return nil, fmt.Errorf("decode the value that was read: %w", err)
	}
	known, err := json.Marshal(read)
	if err != nil {
		return nil, err
	}
	return keepUnknown(original, known, data)
}

// Decode implements Codec.
func (JSON[T]) Decode(data []byte) (T, error) {
	var entity T
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&entity); err == nil {
		if _, err := strict.Token(); err == io.EOF {
			return entity, nil
		}
	}
	// It is invalid, or has fields that T does not have.
	var lenient T
	if err := json.Unmarshal(data, &lenient); err != nil {
		return lenient, err
	}
	if !faults.IsNil(lenient) {
		lenient.EntityMeta().original = bytes.Clone(data)
	}
	return lenient, nil
}
