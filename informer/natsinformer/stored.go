package natsinformer

import "fmt"

// Stored returns an entity as it would be read back if it were written: a copy that went through the codec, with the
// same revision. It sends no request.
func (b *Bucket[T]) Stored(entity T) (T, error) {
	data, err := b.config.Codec.Encode(entity)
	if err != nil {
		var none T
		return none, fmt.Errorf("encode %s: %w", entity.GetName(), err)
	}
	return b.decode(entity.GetName(), entity.EntityMeta().revision, data)
}
