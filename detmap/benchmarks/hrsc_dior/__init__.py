"""HRSC2016 and DIOR-R: folders of XML with rotated boxes."""
