package inspector

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// RingRange is a range of hashes, and who works on the objects in it.
type RingRange struct {
	// First is where the range begins, in hexadecimal digits; it ends where the next one begins.
	First string `json:"first"`
	// Owner is the replica that has it, or that is about to give it to Next as soon as its work in it has ended. Nobody's is empty.
	Owner string `json:"owner,omitempty"`
	Next  string `json:"next,omitempty"`
	// Since is from when on it was like this, as far as this replica knows.
	Since time.Time `json:"since"`
	// Objects are how many lie in it, of all frameworks, when that was last looked at to share them out.
	Objects int `json:"objects"`
}

// The drawing of a ring, in units of its view box: the radius of the middle of its band, its width, and the least length of an arc.
const (
	ringRadius = 80.0
	ringBand   = 26.0
	leastArc   = 1.0
	// ringColors is how many colors there are for replicas, after which they begin anew.
	ringColors = 8
)

// arc is a range as a piece of a drawing.
type arc struct {
	RingRange
	// Path is the line in the middle of the band.
	Path string
	// Class has the color of who has it, and whether it moves.
	Class string
}

// ringOf draws ranges as a ring, in their order. An arc is as long as the range has objects, and where there are none at all as long as all
// others.
func ringOf(o Overview) []arc {
	weights, total := make([]float64, len(o.Ranges)), 0.0
	for _, r := range o.Ranges {
		total += float64(r.Objects)
	}
	sum := 0.0
	for i, r := range o.Ranges {
		weights[i] = 1
		if total > 0 {
			weights[i] = max(float64(r.Objects), leastArc*total/(2*math.Pi*ringRadius))
		}
		sum += weights[i]
	}
	arcs := make([]arc, 0, len(o.Ranges))
	from := 0.0
	for i, r := range o.Ranges {
		to := from + weights[i]/sum
		class := colorOf(o, r.Owner)
		if r.Next != "" {
			class += " moving"
		}
		arcs = append(arcs, arc{RingRange: r, Path: arcPath(from, to), Class: class})
		from = to
	}
	return arcs
}

// arcPath is the line from one part of the circle to another one, from 0 to 1, clockwise from the top. All of the circle is two halves.
func arcPath(from, to float64) string {
	point := func(part float64) string {
		angle := 2 * math.Pi * part
		return fmt.Sprintf("%.2f %.2f", ringRadius*math.Sin(angle), -ringRadius*math.Cos(angle))
	}
	middle := (from + to) / 2
	return fmt.Sprintf("M%s A%g %g 0 0 1 %s A%g %g 0 0 1 %s", point(from), ringRadius, ringRadius, point(middle), ringRadius, ringRadius, point(to))
}

// colorOf is the class with the color of a replica.
func colorOf(o Overview, replica string) string {
	i := slices.IndexFunc(o.Replicas, func(r Replica) bool { return r.Name == replica })
	if replica == "" || i < 0 {
		return "nobody"
	}
	if o.Replicas[0].Name == "" {
		i--
	}
	return fmt.Sprintf("replica-%d", i%ringColors)
}
