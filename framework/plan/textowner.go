package plan

import "strings"

// objectresource, configmapresource and secretresource record the owner of an object at these
// places.
var (
	ownerPlace      = "metadata.annotations" + Segment("operatorkit.io/owner")
	ownershipPlaces = []string{
		ownerPlace,
		"metadata.annotations" + Segment("operatorkit.io/operator"),
		"metadata.annotations" + Segment("operatorkit.io/framework"),
		"metadata.annotations" + Segment("operatorkit.io/resource"),
		"metadata.labels" + Segment("operatorkit.io/owner"),
		"metadata.labels" + Segment("operatorkit.io/operator"),
	}
)

// ownerAndRest returns the owner of a created object as one value, such as
// "Website.example.com/default/home", and the other fields, without the marks and the reference to
// this owner, which repeat it for programs. For objects without such a mark it returns all fields.
func ownerAndRest(c Change) (owner any, rest []FieldChange) {
	if c.Action != Create {
		return nil, c.Fields
	}
	places := ownershipPlaces
	for _, f := range c.Fields {
		if name, ok := f.New.(string); ok && f.Path == ownerPlace && !f.Sensitive {
			owner = name
			reference := "metadata.ownerReferences[name=" + name[strings.LastIndex(name, "/")+1:] + "]"
			places = append(places[:len(places):len(places)], reference)
		}
	}
	if owner == nil {
		return nil, c.Fields
	}
	for _, f := range c.Fields {
		if !Below(f.Path, places...) {
			rest = append(rest, f)
		}
	}
	return owner, rest
}
